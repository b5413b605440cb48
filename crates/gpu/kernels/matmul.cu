// c = a * b for row-major matrices of f32: `rows` by `inner` times `inner` by `columns`. Tiles of 64 by 64 in shared memory, 4 by 4 results for
// each of 256 threads: enough to keep a device busy beside communication, and no library. Products are added in the order of `inner`.

const unsigned TILE = 64, DEPTH = 16;

extern "C" __global__ void __launch_bounds__(256)
matmul(const float *a, const float *b, float *c, unsigned rows, unsigned inner, unsigned columns)
{
    __shared__ float left[DEPTH][TILE], right[DEPTH][TILE];
    unsigned row = blockIdx.y * TILE, column = blockIdx.x * TILE;
    unsigned x = threadIdx.x % 16, y = threadIdx.x / 16;
    float sums[4][4] = {};
    for (unsigned from = 0; from < inner; from += DEPTH) {
        for (unsigned at = threadIdx.x; at < TILE * DEPTH; at += 256) {
            unsigned deep = at % DEPTH, wide = at / DEPTH;
            bool is_left = row + wide < rows && from + deep < inner;
            left[deep][wide] = is_left ? a[(unsigned long long)(row + wide) * inner + from + deep] : 0.0f;
            deep = at / TILE, wide = at % TILE;
            bool is_right = column + wide < columns && from + deep < inner;
            right[deep][wide] = is_right ? b[(unsigned long long)(from + deep) * columns + column + wide] : 0.0f;
        }
        __syncthreads();
        for (unsigned deep = 0; deep < DEPTH; deep++)
            for (unsigned i = 0; i < 4; i++)
                for (unsigned j = 0; j < 4; j++) sums[i][j] = fmaf(left[deep][y * 4 + i], right[deep][x * 4 + j], sums[i][j]);
        __syncthreads();
    }
    for (unsigned i = 0; i < 4; i++)
        for (unsigned j = 0; j < 4; j++)
            if (row + y * 4 + i < rows && column + x * 4 + j < columns)
                c[(unsigned long long)(row + y * 4 + i) * columns + column + x * 4 + j] = sums[i][j];
}
