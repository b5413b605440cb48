/* Uses the device through the interface of the distribution's headers: queue pairs of this process, connected with each other.
 *
 * Prints "no device" without a seat, else the number of checks and of those that failed. Waits are bounded loops of polls. */
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned checks, failed;

#define CHECK(condition) \
    do { \
        checks++; \
        if (!(condition)) { \
            failed++; \
            printf("line %d: %s (errno %d)\n", __LINE__, #condition, errno); \
        } \
    } while (0)

enum { BYTES = 4096, QKEY = 0x11 };

static struct ibv_context *context;
static struct ibv_pd *domain;
static struct ibv_cq *queue;
static struct ibv_mr *region;
static _Alignas(8) unsigned char memory[BYTES];

/* Waits for one completion. The number of polls is bounded, so a completion that never comes is a failed check. */
static struct ibv_wc next_of(struct ibv_cq *from)
{
    struct ibv_wc completion = {.status = IBV_WC_GENERAL_ERR};
    for (unsigned long polls = 0; polls < 2000000000UL; polls++) {
        int count = ibv_poll_cq(from, 1, &completion);
        if (count != 0) {
            CHECK(count == 1);
            return completion;
        }
    }
    CHECK(!"a completion");
    return completion;
}

static struct ibv_wc next(void)
{
    return next_of(queue);
}

static struct ibv_sge part(unsigned offset, unsigned length)
{
    return (struct ibv_sge){(uintptr_t)memory + offset, length, region->lkey};
}

static struct ibv_qp *make(enum ibv_qp_type type, struct ibv_srq *shared)
{
    struct ibv_qp_init_attr init = {
        .send_cq = queue, .recv_cq = queue, .srq = shared, .qp_type = type,
        .cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 4, .max_recv_sge = 4, .max_inline_data = 128}};
    struct ibv_qp *pair = ibv_create_qp(domain, &init);
    CHECK(pair && pair->state == IBV_QPS_RESET && init.cap.max_inline_data >= 128);
    return pair;
}

static struct ibv_ah_attr route(void)
{
    struct ibv_ah_attr attributes = {.is_global = 1, .port_num = 1, .grh = {.sgid_index = 1, .hop_limit = 8}};
    CHECK(ibv_query_gid(context, 1, 1, &attributes.grh.dgid) == 0);
    return attributes;
}

static int to_init(struct ibv_qp *pair)
{
    struct ibv_qp_attr attributes = {
        .qp_state = IBV_QPS_INIT, .port_num = 1,
        .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC};
    return ibv_modify_qp(pair, &attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

static int to_rtr(struct ibv_qp *pair, uint32_t peer)
{
    struct ibv_qp_attr attributes = {
        .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = peer, .max_dest_rd_atomic = 1,
        .min_rnr_timer = 1, .ah_attr = route()};
    return ibv_modify_qp(pair, &attributes,
        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
            IBV_QP_MIN_RNR_TIMER);
}

static int to_rts(struct ibv_qp *pair, uint8_t retries)
{
    struct ibv_qp_attr attributes = {
        .qp_state = IBV_QPS_RTS, .timeout = 1, .retry_cnt = retries, .rnr_retry = retries, .max_rd_atomic = 1};
    return ibv_modify_qp(pair, &attributes,
        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

static void connect_pairs(struct ibv_qp *a, struct ibv_qp *b)
{
    CHECK(to_init(a) == 0 && to_init(b) == 0);
    CHECK(to_rtr(a, b->qp_num) == 0 && to_rtr(b, a->qp_num) == 0);
    CHECK(to_rts(a, 1) == 0 && to_rts(b, 1) == 0 && a->state == IBV_QPS_RTS);
}

static void receive(struct ibv_qp *pair, uint64_t id, struct ibv_sge *parts, int count)
{
    struct ibv_recv_wr request = {.wr_id = id, .sg_list = parts, .num_sge = count}, *bad = NULL;
    CHECK(ibv_post_recv(pair, &request, &bad) == 0);
}

static int post(struct ibv_qp *pair, struct ibv_send_wr request)
{
    struct ibv_send_wr *bad = NULL;
    request.send_flags |= IBV_SEND_SIGNALED;
    return ibv_post_send(pair, &request, &bad);
}

static void messages(struct ibv_qp *a, struct ibv_qp *b)
{
    struct ibv_sge source[2] = {part(0, 3), part(100, 5)}, target[2] = {part(1000, 4), part(2000, 100)};
    strcpy((char *)memory, "abc");
    memcpy(memory + 100, "defgh", 5);
    receive(b, 7, target, 2);
    struct ibv_send_wr send = {
        .wr_id = 8, .sg_list = source, .num_sge = 2, .opcode = IBV_WR_SEND_WITH_IMM, .imm_data = 0x01020304};
    CHECK(post(a, send) == 0);
    /* The order between queues of two queue pairs is not defined. */
    for (int i = 0; i < 2; i++) {
        struct ibv_wc found = next();
        CHECK(found.status == IBV_WC_SUCCESS);
        if (found.opcode == IBV_WC_RECV)
            CHECK(found.wr_id == 7 && found.byte_len == 8 && found.imm_data == 0x01020304 &&
                  found.wc_flags == IBV_WC_WITH_IMM && found.qp_num == b->qp_num);
        else
            CHECK(found.opcode == IBV_WC_SEND && found.wr_id == 8 && found.qp_num == a->qp_num);
    }
    CHECK(memcmp(memory + 1000, "abcd", 4) == 0 && memcmp(memory + 2000, "efgh", 4) == 0);

    /* Inline data of memory that is not registered; a list of requests. */
    char outside[] = "inline";
    struct ibv_sge inlined = {(uintptr_t)outside, sizeof(outside), 0}, space = part(1500, 100);
    receive(b, 9, &space, 1);
    receive(b, 10, NULL, 0);
    struct ibv_send_wr second = {.wr_id = 12, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr first = {
        .wr_id = 11, .sg_list = &inlined, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_INLINE, .next = &second};
    struct ibv_send_wr *bad = NULL;
    CHECK(ibv_post_send(a, &first, &bad) == 0);
    memset(outside, 0, sizeof(outside));
    for (int i = 0, receives = 9; i < 3; i++) {
        struct ibv_wc found = next();
        CHECK(found.status == IBV_WC_SUCCESS);
        CHECK(found.opcode == IBV_WC_RECV ? found.wr_id == (uint64_t)receives++ : found.wr_id == 12);
    }
    CHECK(strcmp((char *)memory + 1500, "inline") == 0);
}

static void one_sided(struct ibv_qp *a, struct ibv_qp *b)
{
    struct ibv_sge source = part(0, 64), local = part(512, 8);
    for (int i = 0; i < 64; i++)
        memory[i] = (unsigned char)(i * 3);
    struct ibv_send_wr request = {.wr_id = 1, .sg_list = &source, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};
    request.wr.rdma.remote_addr = (uintptr_t)memory + 3000;
    request.wr.rdma.rkey = region->rkey;
    CHECK(post(a, request) == 0);
    struct ibv_wc found = next();
    CHECK(found.status == IBV_WC_SUCCESS && found.opcode == IBV_WC_RDMA_WRITE && found.wr_id == 1);
    CHECK(memcmp(memory, memory + 3000, 64) == 0);

    source = part(200, 64);
    request.opcode = IBV_WR_RDMA_READ;
    CHECK(post(a, request) == 0);
    found = next();
    CHECK(found.status == IBV_WC_SUCCESS && found.opcode == IBV_WC_RDMA_READ && found.byte_len == 64);
    CHECK(memcmp(memory + 200, memory + 3000, 64) == 0);

    receive(b, 2, NULL, 0);
    request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    request.imm_data = 77;
    CHECK(post(a, request) == 0);
    for (int i = 0; i < 2; i++) {
        found = next();
        CHECK(found.status == IBV_WC_SUCCESS);
        if (found.wr_id == 2)
            CHECK(found.opcode == IBV_WC_RECV_RDMA_WITH_IMM && found.imm_data == 77 && found.byte_len == 64);
    }

    uint64_t value = 40, old;
    memcpy(memory + 3200, &value, 8);
    struct ibv_send_wr atomic = {.wr_id = 3, .sg_list = &local, .num_sge = 1, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD};
    atomic.wr.atomic.remote_addr = (uintptr_t)memory + 3200;
    atomic.wr.atomic.rkey = region->rkey;
    atomic.wr.atomic.compare_add = 2;
    CHECK(post(a, atomic) == 0);
    found = next();
    memcpy(&old, memory + 512, 8);
    CHECK(found.status == IBV_WC_SUCCESS && found.opcode == IBV_WC_FETCH_ADD && old == 40);
    atomic.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
    atomic.wr.atomic.compare_add = 42;
    atomic.wr.atomic.swap = 7;
    CHECK(post(a, atomic) == 0);
    found = next();
    memcpy(&old, memory + 512, 8);
    memcpy(&value, memory + 3200, 8);
    CHECK(found.status == IBV_WC_SUCCESS && found.opcode == IBV_WC_COMP_SWAP && old == 42 && value == 7);
}

static void errors(void)
{
    struct ibv_qp *a = make(IBV_QPT_RC, NULL), *b = make(IBV_QPT_RC, NULL);
    struct ibv_send_wr request = {.wr_id = 1, .opcode = IBV_WR_SEND}, *bad = NULL;
    CHECK(ibv_post_send(a, &request, &bad) == EINVAL && bad == &request);
    CHECK(to_rtr(a, b->qp_num) == EINVAL && a->state == IBV_QPS_RESET);
    connect_pairs(a, b);
    request.opcode = IBV_WR_LOCAL_INV;
    CHECK(ibv_post_send(a, &request, &bad) == EOPNOTSUPP);

    struct ibv_sge source = part(0, 8);
    struct ibv_send_wr write = {.wr_id = 5, .sg_list = &source, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};
    write.wr.rdma.remote_addr = (uintptr_t)memory + BYTES - 7;
    write.wr.rdma.rkey = region->rkey;
    receive(b, 6, NULL, 0);
    CHECK(post(a, write) == 0 && post(a, write) == 0);
    CHECK(next().status == IBV_WC_WR_FLUSH_ERR);
    struct ibv_wc found = next();
    CHECK(found.status == IBV_WC_REM_ACCESS_ERR && found.wr_id == 5);
    CHECK(next().status == IBV_WC_WR_FLUSH_ERR);
    struct ibv_qp_attr attributes;
    struct ibv_qp_init_attr init;
    CHECK(ibv_query_qp(a, &attributes, IBV_QP_STATE, &init) == 0);
    CHECK(attributes.qp_state == IBV_QPS_ERR && init.qp_type == IBV_QPT_RC && init.send_cq == queue);

    struct pollfd descriptor = {.fd = context->async_fd, .events = POLLIN};
    CHECK(poll(&descriptor, 1, 0) == 1);
    struct ibv_async_event event;
    CHECK(ibv_get_async_event(context, &event) == 0);
    CHECK(event.event_type == IBV_EVENT_QP_ACCESS_ERR && event.element.qp == b);
    ibv_ack_async_event(&event);
    CHECK(poll(&descriptor, 1, 0) == 0);
    CHECK(ibv_destroy_qp(a) == 0 && ibv_destroy_qp(b) == 0);

    /* Retries end by themselves: the receiver is not ready, and then gone. */
    a = make(IBV_QPT_RC, NULL), b = make(IBV_QPT_RC, NULL);
    connect_pairs(a, b);
    request.opcode = IBV_WR_SEND;
    CHECK(post(a, request) == 0);
    CHECK(next().status == IBV_WC_RNR_RETRY_EXC_ERR);
    CHECK(ibv_destroy_qp(a) == 0);
    a = make(IBV_QPT_RC, NULL);
    CHECK(to_init(a) == 0 && to_rtr(a, b->qp_num) == 0 && to_rts(a, 1) == 0);
    CHECK(ibv_destroy_qp(b) == 0);
    CHECK(post(a, request) == 0 && post(a, request) == 0);
    CHECK(next().status == IBV_WC_RETRY_EXC_ERR);
    CHECK(next().status == IBV_WC_WR_FLUSH_ERR);
    CHECK(ibv_destroy_qp(a) == 0);
}

static void datagrams(void)
{
    struct ibv_qp *a = make(IBV_QPT_UD, NULL), *b = make(IBV_QPT_UD, NULL);
    struct ibv_qp *both[] = {a, b};
    for (int i = 0; i < 2; i++) {
        struct ibv_qp_attr attributes = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};
        CHECK(ibv_modify_qp(both[i], &attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) == 0);
        attributes.qp_state = IBV_QPS_RTR;
        CHECK(ibv_modify_qp(both[i], &attributes, IBV_QP_STATE) == 0);
        attributes.qp_state = IBV_QPS_RTS;
        CHECK(ibv_modify_qp(both[i], &attributes, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0);
    }
    struct ibv_ah_attr attributes = route();
    struct ibv_ah *address = ibv_create_ah(domain, &attributes);
    CHECK(address && ibv_dealloc_pd(domain) == EBUSY);
    struct ibv_sge source = part(0, 16), target = part(1024, 40 + 16);
    memset(memory, 'u', 16);
    receive(b, 4, &target, 1);
    struct ibv_send_wr send = {.wr_id = 3, .sg_list = &source, .num_sge = 1, .opcode = IBV_WR_SEND};
    send.wr.ud.ah = address;
    send.wr.ud.remote_qpn = b->qp_num;
    send.wr.ud.remote_qkey = QKEY;
    CHECK(post(a, send) == 0);
    for (int i = 0; i < 2; i++) {
        struct ibv_wc found = next();
        CHECK(found.status == IBV_WC_SUCCESS);
        if (found.wr_id != 4)
            continue;
        CHECK(found.byte_len == 56 && found.src_qp == a->qp_num && found.wc_flags == IBV_WC_GRH);
        CHECK(memcmp(memory + 1024 + 40, memory, 16) == 0);
        struct ibv_ah_attr back;
        struct ibv_grh *header = (struct ibv_grh *)(memory + 1024);
        CHECK(ibv_init_ah_from_wc(context, 1, &found, header, &back) == 0);
        CHECK(memcmp(&back.grh.dgid, &attributes.grh.dgid, 16) == 0 && back.grh.sgid_index == 1);
        struct ibv_ah *reply = ibv_create_ah_from_wc(domain, &found, header, 1);
        CHECK(reply && ibv_destroy_ah(reply) == 0);
    }
    send.wr.ud.remote_qkey = QKEY + 1;
    CHECK(post(a, send) == 0 && next().status == IBV_WC_SUCCESS);
    struct ibv_wc none;
    CHECK(ibv_poll_cq(queue, 1, &none) == 0);
    CHECK(ibv_destroy_qp(a) == 0 && ibv_destroy_qp(b) == 0 && ibv_destroy_ah(address) == 0);
}

static void shared_queue(void)
{
    struct ibv_srq_init_attr init = {.attr = {.max_wr = 4, .max_sge = 1}};
    struct ibv_srq *shared = ibv_create_srq(domain, &init);
    CHECK(shared != NULL);
    struct ibv_qp *a = make(IBV_QPT_RC, NULL), *b = make(IBV_QPT_RC, shared);
    connect_pairs(a, b);
    struct ibv_recv_wr second = {.wr_id = 21}, first = {.wr_id = 20, .next = &second}, *bad = NULL;
    CHECK(ibv_post_srq_recv(shared, &first, &bad) == 0);
    struct ibv_srq_attr limit = {.srq_limit = 2};
    CHECK(ibv_modify_srq(shared, &limit, IBV_SRQ_LIMIT) == 0);
    struct ibv_send_wr send = {.wr_id = 1, .opcode = IBV_WR_SEND};
    CHECK(post(a, send) == 0);
    for (int i = 0; i < 2; i++) {
        struct ibv_wc found = next();
        CHECK(found.status == IBV_WC_SUCCESS && (found.wr_id == 20 || found.wr_id == 1));
    }
    struct ibv_async_event event;
    CHECK(ibv_get_async_event(context, &event) == 0);
    CHECK(event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED && event.element.srq == shared);
    ibv_ack_async_event(&event);
    CHECK(ibv_query_srq(shared, &limit) == 0 && limit.max_wr == 4 && limit.srq_limit == 0);
    CHECK(ibv_destroy_srq(shared) == EBUSY);
    CHECK(ibv_destroy_qp(b) == 0 && ibv_destroy_qp(a) == 0);
    CHECK(ibv_destroy_srq(shared) == 0);
}

static void channels(void)
{
    struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
    CHECK(channel && fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK) == 0);
    struct ibv_cq *usual = queue, *found;
    void *value;
    int mark;
    queue = ibv_create_cq(context, 8, &mark, channel, 0);
    CHECK(queue && ibv_destroy_comp_channel(channel) == EBUSY);
    struct ibv_qp *a = make(IBV_QPT_RC, NULL), *b = make(IBV_QPT_RC, NULL);
    connect_pairs(a, b);
    CHECK(ibv_get_cq_event(channel, &found, &value) == -1 && errno == EAGAIN);
    CHECK(ibv_req_notify_cq(queue, 0) == 0);
    struct ibv_sge source = part(0, 8);
    struct ibv_send_wr write = {.wr_id = 5, .sg_list = &source, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};
    write.wr.rdma.remote_addr = (uintptr_t)memory + 64;
    write.wr.rdma.rkey = region->rkey;
    CHECK(post(a, write) == 0);
    struct pollfd descriptor = {.fd = channel->fd, .events = POLLIN};
    CHECK(poll(&descriptor, 1, 0) == 1);
    CHECK(ibv_get_cq_event(channel, &found, &value) == 0 && found == queue && value == &mark);
    CHECK(poll(&descriptor, 1, 0) == 0);
    CHECK(ibv_destroy_cq(queue) == EBUSY);
    CHECK(ibv_resize_cq(queue, 100) == 0 && queue->cqe == 100);
    CHECK(next().wr_id == 5);
    CHECK(ibv_destroy_qp(a) == 0 && ibv_destroy_qp(b) == 0);
    ibv_ack_cq_events(queue, 1);
    CHECK(ibv_destroy_cq(queue) == 0 && ibv_destroy_comp_channel(channel) == 0);
    queue = usual;
}

static void queries(struct ibv_device *device)
{
    struct ibv_device_attr attributes;
    struct ibv_device_attr_ex extended;
    struct ibv_port_attr port;
    struct ibv_gid_entry entries[4];
    union ibv_gid gid;
    __be16 pkey;
    CHECK(strcmp(ibv_get_device_name(device), "rackloom0") == 0 && ibv_get_device_guid(device) != 0);
    CHECK(ibv_get_device_index(device) == 0);
    CHECK(ibv_query_device(context, &attributes) == 0 && attributes.phys_port_cnt == 1 && attributes.max_qp > 1000);
    CHECK(ibv_query_device_ex(context, NULL, &extended) == 0 && extended.orig_attr.max_qp == attributes.max_qp);
    memset(&port, 0xff, sizeof(port));
    CHECK(ibv_query_port(context, 1, &port) == 0 && port.state == IBV_PORT_ACTIVE && port.port_cap_flags2 == 0);
    CHECK(port.link_layer == IBV_LINK_LAYER_ETHERNET && port.gid_tbl_len == 2 && port.pkey_tbl_len == 1);
    CHECK(ibv_query_port(context, 2, &port) == EINVAL);
    CHECK(ibv_query_gid(context, 1, 0, &gid) == 0 && gid.raw[0] == 0xfe);
    CHECK(ibv_query_gid(context, 1, 2, &gid) == -1);
    CHECK(ibv_query_gid_ex(context, 1, 1, entries, 0) == 0 && entries[0].gid_type == IBV_GID_TYPE_ROCE_V2);
    CHECK(ibv_query_gid_table(context, entries, 4, 0) == 2 && entries[1].gid_index == 1);
    CHECK(ibv_query_gid_table(context, entries, 1, 0) == -EINVAL);
    CHECK(ibv_query_pkey(context, 1, 0, &pkey) == 0 && pkey == 0xffff && ibv_get_pkey_index(context, 1, pkey) == 0);
    CHECK(strcmp(ibv_wc_status_str(IBV_WC_SUCCESS), "success") == 0 && ibv_wc_status_str(99) != NULL);
    CHECK(ibv_event_type_str(IBV_EVENT_PORT_ERR) && ibv_node_type_str(IBV_NODE_CA) && ibv_port_state_str(IBV_PORT_DOWN));
    CHECK(ibv_rate_to_mult(IBV_RATE_10_GBPS) == 4 && mult_to_ibv_rate(4) == IBV_RATE_10_GBPS);
    CHECK(ibv_rate_to_mbps(IBV_RATE_100_GBPS) == 103125 && mbps_to_ibv_rate(103125) == IBV_RATE_100_GBPS);
    CHECK(ibv_fork_init() == 0);
}

/* Null where an object is needed is an error and no crash. */
static void misuse(void)
{
    struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC};
    CHECK(ibv_open_device(NULL) == NULL && errno == EINVAL);
    CHECK(ibv_close_device(NULL) == EINVAL);
    CHECK(ibv_alloc_pd(NULL) == NULL && errno == EINVAL);
    CHECK(ibv_dealloc_pd(NULL) == EINVAL && ibv_dereg_mr(NULL) == EINVAL);
    CHECK(ibv_create_cq(NULL, 8, NULL, NULL, 0) == NULL && ibv_create_cq(context, 0, NULL, NULL, 0) == NULL);
    CHECK(ibv_create_cq(context, 8, NULL, NULL, 1) == NULL && errno == EINVAL);
    CHECK(ibv_destroy_cq(NULL) == EINVAL && ibv_destroy_qp(NULL) == EINVAL && ibv_destroy_srq(NULL) == EINVAL);
    CHECK(ibv_destroy_ah(NULL) == EINVAL && ibv_create_comp_channel(NULL) == NULL);
    CHECK(ibv_create_qp(domain, &init) == NULL && errno == EINVAL);
    init.send_cq = init.recv_cq = queue;
    init.qp_type = IBV_QPT_RAW_PACKET;
    CHECK(ibv_create_qp(domain, &init) == NULL && errno == EOPNOTSUPP);
    init.qp_type = IBV_QPT_RC;
    init.cap.max_inline_data = 1 << 20;
    CHECK(ibv_create_qp(domain, &init) == NULL && errno == EINVAL);
    CHECK(ibv_modify_qp(NULL, NULL, 0) == EINVAL && ibv_query_device(context, NULL) == EINVAL);
    CHECK(ibv_get_async_event(NULL, NULL) == -1 && ibv_get_cq_event(NULL, NULL, NULL) == -1);
    CHECK(ibv_reg_mr(domain, NULL, 4096, IBV_ACCESS_LOCAL_WRITE) == NULL && errno == EFAULT);
    CHECK(ibv_reg_mr(domain, memory, BYTES, IBV_ACCESS_REMOTE_WRITE) == NULL && errno == EINVAL);
    CHECK(ibv_reg_mr(domain, memory, BYTES, IBV_ACCESS_ON_DEMAND) == NULL && errno == EOPNOTSUPP);
    CHECK(ibv_alloc_mw(domain, IBV_MW_TYPE_1) == NULL && errno == EOPNOTSUPP);
    CHECK(ibv_reg_dmabuf_mr(domain, 0, 8, 0, -1, 0) == NULL && errno == EOPNOTSUPP);
    CHECK(ibv_get_device_name(NULL) == NULL);
    ibv_free_device_list(NULL);
    ibv_ack_async_event(NULL);
    ibv_ack_cq_events(NULL, 1);
}

static void virtual_addresses(struct ibv_qp *a)
{
    struct ibv_mr *moved = ibv_reg_mr_iova(domain, memory + 2048, 512, 0x10000, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    CHECK(moved != NULL);
    struct ibv_sge source = part(0, 8);
    struct ibv_send_wr write = {.wr_id = 31, .sg_list = &source, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};
    memcpy(memory, "12345678", 8);
    write.wr.rdma.remote_addr = 0x10000 + 504;
    write.wr.rdma.rkey = moved->rkey;
    CHECK(post(a, write) == 0 && next().status == IBV_WC_SUCCESS);
    CHECK(memcmp(memory + 2048 + 504, "12345678", 8) == 0);
    CHECK(ibv_dereg_mr(moved) == 0);
}

int main(void)
{
    int count = -1;
    struct ibv_device **list = ibv_get_device_list(&count);
    if (!list || count == 0) {
        puts(list && !list[0] ? "no device" : "no list");
        ibv_free_device_list(list);
        return 0;
    }
    CHECK(count == 1 && list[1] == NULL);
    context = ibv_open_device(list[0]);
    CHECK(context && context->async_fd >= 0);
    domain = ibv_alloc_pd(context);
    queue = ibv_create_cq(context, 64, NULL, NULL, 0);
    region = ibv_reg_mr(domain, memory, BYTES,
        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
    CHECK(domain && queue && region);
    if (failed)
        return 1;
    queries(list[0]);
    ibv_free_device_list(list);
    misuse();
    struct ibv_qp *a = make(IBV_QPT_RC, NULL), *b = make(IBV_QPT_RC, NULL);
    connect_pairs(a, b);
    messages(a, b);
    one_sided(a, b);
    virtual_addresses(a);
    CHECK(ibv_destroy_qp(a) == 0 && ibv_destroy_qp(b) == 0);
    errors();
    datagrams();
    shared_queue();
    channels();
    CHECK(ibv_dealloc_pd(domain) == EBUSY);
    CHECK(ibv_dereg_mr(region) == 0 && ibv_destroy_cq(queue) == 0 && ibv_dealloc_pd(domain) == 0);
    CHECK(ibv_close_device(context) == 0);
    printf("%u checks, %u failed\n", checks, failed);
    return failed != 0;
}
