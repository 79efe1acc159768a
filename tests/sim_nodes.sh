#!/usr/bin/env bash
# A few of ONNX's node tests on the simulator: what is in no instruction runs on the core pipe, lowered and scheduled as for any target.
# All of them run on every engine in onnx_nodes.sh.
set -u
. "$(dirname "$0")/built.bash"
data=${KILN_ONNX_NODES:-/usr/share/libonnx-testdata/data/node}
kiln=$bin/kiln
if [ ! -d "$data" ]; then
    echo "skipped: no ONNX node tests at $data (Debian package libonnx-testdata)"
    exit 77
fi
failed=0
for name in add_bcast matmul_3d gemm_all_attributes softmax_axis_1 layer_normalization_4d_axis2 \
    conv_with_strides_padding maxpool_2d_default gather_1 nonzero_example lstm_defaults \
    qlinearmatmul_2D dequantizelinear top_k where_example reduce_mean_keepdims_random; do
    test=$data/test_$name
    [ -d "$test" ] || continue
    line=$("$kiln" verify "$test/model.onnx" --data "$test/test_data_set_0" --target npu-edge 2>&1 | head -n 1)
    echo "$name: $line"
    [ "$line" = ok ] || failed=1
done
if "$kiln" verify "$data/test_add/model.onnx" --data "$data/test_add/test_data_set_0" --target npu-none >/dev/null 2>&1; then
    echo "a target that is not there was taken"
    failed=1
fi
exit $failed
