#!/usr/bin/env python3
"""Runs the server of llama.cpp from the package xllamacpp, which need not be built, with llama-server's arguments."""

import argparse
import signal

import xllamacpp

parser = argparse.ArgumentParser()
parser.add_argument("-m", dest="model")
parser.add_argument("-c", dest="context", type=int)
parser.add_argument("-np", dest="parallel", type=int)
parser.add_argument("-t", dest="threads", type=int)
for name in ("alias", "host", "pooling"):
    parser.add_argument(f"--{name}")
parser.add_argument("--port", type=int)
parser.add_argument("--embeddings", action="store_true")
parser.add_argument("--version", action="version", version=xllamacpp.__version__)
args = parser.parse_args()

params = xllamacpp.CommonParams()
params.model.path = args.model
params.model_alias = {args.alias}
params.n_ctx = args.context
params.n_parallel = args.parallel
params.cpuparams.n_threads = args.threads
params.cpuparams_batch.n_threads = args.threads
params.hostnames = [args.host]
params.port = args.port
params.embedding = args.embeddings
params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
server = xllamacpp.Server(params)
signal.pause()
