/* Threads of one process use the device at the same time: each has two queue pairs, writes from one to the other, and waits for the last byte in
 * memory, as latency tests do; all add to one counter.
 *
 * Prints the number of checks and of those that failed. */
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, ROUNDS = 2000, BYTES = 1000 };

static struct ibv_context *context;
static struct ibv_pd *domain;
static struct ibv_mr *counter_region;
static _Alignas(8) uint64_t counter;

static int all(int condition, const char *text)
{
    if (!condition) {
        printf("failed: %s\n", text);
        exit(1);
    }
    return 1;
}
#define NEED(condition) all(!!(condition), #condition)

static void bring(struct ibv_qp *pair, uint32_t peer)
{
    struct ibv_qp_attr attributes = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
        .path_mtu = IBV_MTU_4096, .dest_qp_num = peer, .max_dest_rd_atomic = 1, .max_rd_atomic = 1, .min_rnr_timer = 1,
        .timeout = 14, .retry_cnt = 7, .rnr_retry = 7,
        .ah_attr = {.is_global = 1, .port_num = 1}};
    NEED(ibv_query_gid(context, 1, 0, &attributes.ah_attr.grh.dgid) == 0);
    NEED(!ibv_modify_qp(pair, &attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
    attributes.qp_state = IBV_QPS_RTR;
    NEED(!ibv_modify_qp(pair, &attributes,
        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
            IBV_QP_MIN_RNR_TIMER));
    attributes.qp_state = IBV_QPS_RTS;
    NEED(!ibv_modify_qp(pair, &attributes,
        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC));
}

static void finish(struct ibv_cq *queue)
{
    struct ibv_wc completion;
    int count;
    while ((count = ibv_poll_cq(queue, 1, &completion)) == 0)
        ;
    NEED(count == 1 && completion.status == IBV_WC_SUCCESS);
}

static void *run(void *argument)
{
    (void)argument;
    static __thread _Alignas(8) unsigned char memory[2 * BYTES + 8];
    struct ibv_cq *queue = ibv_create_cq(context, 16, NULL, NULL, 0);
    struct ibv_mr *region =
        ibv_reg_mr(domain, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    NEED(queue && region);
    struct ibv_qp_init_attr init = {
        .send_cq = queue, .recv_cq = queue, .qp_type = IBV_QPT_RC, .sq_sig_all = 1,
        .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};
    struct ibv_qp *a = ibv_create_qp(domain, &init), *b = ibv_create_qp(domain, &init);
    NEED(a && b);
    bring(a, b->qp_num);
    bring(b, a->qp_num);
    for (int round = 0; round < ROUNDS; round++) {
        memset(memory, round, BYTES);
        struct ibv_sge data = {(uintptr_t)memory, BYTES, region->lkey};
        struct ibv_sge old = {(uintptr_t)memory + 2 * BYTES, 8, region->lkey};
        struct ibv_send_wr add = {.sg_list = &old, .num_sge = 1, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD};
        struct ibv_send_wr write = {.sg_list = &data, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .next = &add}, *bad;
        write.wr.rdma.remote_addr = (uintptr_t)memory + BYTES;
        write.wr.rdma.rkey = region->rkey;
        add.wr.atomic.remote_addr = (uintptr_t)&counter;
        add.wr.atomic.rkey = counter_region->rkey;
        add.wr.atomic.compare_add = 1;
        NEED(ibv_post_send(a, &write, &bad) == 0);
        volatile unsigned char *last = memory + 2 * BYTES - 1;
        while (*last != (unsigned char)round)
            ;
        NEED(memcmp(memory, memory + BYTES, BYTES) == 0);
        finish(queue);
        finish(queue);
    }
    NEED(!ibv_destroy_qp(a) && !ibv_destroy_qp(b) && !ibv_dereg_mr(region) && !ibv_destroy_cq(queue));
    return &counter;
}

int main(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    NEED(list && list[0]);
    context = ibv_open_device(list[0]);
    domain = ibv_alloc_pd(context);
    counter_region = ibv_reg_mr(domain, &counter, sizeof(counter), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
    NEED(context && domain && counter_region);
    pthread_t threads[THREADS];
    unsigned checks = 0;
    for (int i = 0; i < THREADS; i++)
        NEED(pthread_create(&threads[i], NULL, run, NULL) == 0);
    for (int i = 0; i < THREADS; i++) {
        void *result = NULL;
        NEED(pthread_join(threads[i], &result) == 0);
        checks += result == &counter;
    }
    printf("%u checks, %d failed\n", checks, counter != (uint64_t)THREADS * ROUNDS);
    return 0;
}
