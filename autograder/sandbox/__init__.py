"""The sandbox: a fork server that starts one confined worker for each submission, and the protocol between them.

`graders.decoding` decodes the worker's answers, and has the messages on answers that cannot be decoded.

The untrusted processes import only `core`, `sandbox.confine` and `sandbox.worker`; the other modules are trusted.
Others import `client`, `fork_server`, `isolation`, `limits`, `confine.confinement`, `confine.process`,
`confine.scratch`, `worker.cell_source`, `worker.protocol` and `worker.request_loop`.
"""
