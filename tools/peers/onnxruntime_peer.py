"""ONNX Runtime's CPU provider."""
import onnxruntime

import archives

ARCHIVES = True

def version():
    return onnxruntime.__version__


def workloads():
    return archives.WORKLOADS


def prepare(workload, o):
    file, inputs = archives.exported(workload, o)

    def call():
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = o.threads
        session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
        feed = dict(zip((i.name for i in session.get_inputs()), inputs))
        return lambda: session.run(None, feed)

    return call
