"""OpenVINO on the CPU, in float32, tuned for the time of one call."""
import openvino

import archives

ARCHIVES = True

def version():
    return openvino.__version__.split("-")[0]


def workloads():
    return archives.WORKLOADS


def prepare(workload, o):
    file, inputs = archives.exported(workload, o)
    settings = {"INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": o.threads}

    def call():
        request = openvino.compile_model(file, "CPU", settings).create_infer_request()
        return lambda: request.infer(inputs)

    return call
