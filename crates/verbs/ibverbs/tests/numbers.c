/* Prints the number of the first queue pair of this process. */
#include <infiniband/verbs.h>
#include <stdio.h>

int main(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;
    struct ibv_pd *domain = context ? ibv_alloc_pd(context) : NULL;
    struct ibv_cq *queue = context ? ibv_create_cq(context, 1, NULL, NULL, 0) : NULL;
    struct ibv_qp_init_attr init = {.send_cq = queue, .recv_cq = queue, .qp_type = IBV_QPT_UD, .cap = {1, 1, 1, 1, 0}};
    struct ibv_qp *pair = domain ? ibv_create_qp(domain, &init) : NULL;
    if (!pair)
        return 1;
    printf("%u\n", pair->qp_num);
    return 0;
}
