/** The gateways that are compared, each a process of its own on the gateway's core, all in front of one upstream. */
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { onGatewayCore } from "./machine.ts";
import { processTree } from "./process-usage.ts";

export interface Gateway {
	readonly name: string;
	readonly port: number;
	/** Header lines that it needs beside the usual ones, each with its line break. */
	readonly headers: string;
	/** False for one that does not pass streams of this upstream on. */
	readonly streams: boolean;
	/** Its processes, workers included. */
	pids(): number[];
	stop(): Promise<void>;
}

const START_DEADLINE_MS = 30_000;
/** It loads some hundred megabytes of modules first. */
const LITELLM_START_DEADLINE_MS = 180_000;

/** Runs a program that prints `{"port":…}` in its first line. `log`: the file that takes what it says otherwise. */
export async function startPortPrinter(
	name: string,
	argv: readonly string[],
	env: Record<string, string> = {},
	log?: string,
): Promise<Gateway> {
	const child = Bun.spawn([...argv], {
		env: { ...baseEnvironment(), ...env },
		stdout: "pipe",
		stderr: log === undefined ? "inherit" : Bun.file(log),
	});
	const reader = child.stdout.getReader();
	const { value } = await reader.read();
	const line = new TextDecoder().decode(value).split("\n")[0] ?? "";
	if (!line.startsWith("{")) throw new Error(`${name} did not start`);
	return processGateway(name, (JSON.parse(line) as { port: number }).port, child);
}

export function processGateway(name: string, port: number, child: Bun.Subprocess, headers = ""): Gateway {
	return {
		name,
		port,
		headers,
		streams: true,
		pids: () => processTree(child.pid),
		async stop() {
			child.kill("SIGTERM");
			await child.exited;
		},
	};
}

/** What every process is started with, so that nothing of the caller's environment reaches what is measured. */
export function baseEnvironment(): Record<string, string> {
	return { PATH: process.env.PATH ?? "", HOME: process.env.HOME ?? "/", BUN_CONFIG_MAX_HTTP_REQUESTS: "65535" };
}

/** `reads`: it looks at the events of a stream instead of passing its bytes on. */
export function startBare(
	upstreamPort: number,
	secrets: readonly string[],
	reads = false,
	{ env = {}, log }: { env?: Record<string, string>; log?: string } = {},
): Promise<Gateway> {
	const script = join(import.meta.dir, "bare-pass-through.ts");
	const name = reads ? "bare Bun, reading" : "bare Bun";
	const settings = {
		READS: reads ? "1" : "0",
		UPSTREAM: `http://127.0.0.1:${upstreamPort}/v1`,
		KEYS: secrets.join(","),
		NODE_ENV: "production",
	};
	return startPortPrinter(name, onGatewayCore([process.execPath, script]), { ...settings, ...env }, log);
}

/** `env` names its database and journal. */
export function startPromiseFloor(
	upstreamPort: number,
	secrets: readonly string[],
	{ env, log }: { env: Record<string, string>; log?: string },
): Promise<Gateway> {
	const script = join(import.meta.dir, "promise-floor.ts");
	const settings = {
		UPSTREAM: `http://127.0.0.1:${upstreamPort}/v1`,
		KEYS: secrets.join(","),
		NODE_ENV: "production",
	};
	return startPortPrinter("floor", onGatewayCore([process.execPath, script]), { ...settings, ...env }, log);
}

/** Undefined where nginx is not installed. */
export async function startNginx(upstreamPort: number, folder: string): Promise<Gateway | undefined> {
	if (!Bun.which("nginx")) return undefined;
	const port = freePort();
	mkdirSync(folder, { recursive: true });
	writeFileSync(join(folder, "nginx.conf"), nginxConfig(port, upstreamPort, folder));
	const child = Bun.spawn(onGatewayCore(["nginx", "-c", join(folder, "nginx.conf"), "-e", join(folder, "error.log")]), {
		stdout: "ignore",
		stderr: "ignore",
	});
	await untilListening(port);
	return processGateway("nginx", port, child);
}

function nginxConfig(port: number, upstreamPort: number, folder: string): string {
	return `daemon off;
worker_processes 1;
worker_rlimit_nofile 65536;
pid ${folder}/nginx.pid;
events { worker_connections 32768; }
http {
	access_log off;
	client_max_body_size 64m;
	client_body_buffer_size 4m;
	client_body_temp_path ${folder}/body;
	proxy_temp_path ${folder}/proxy;
	fastcgi_temp_path ${folder}/fastcgi;
	uwsgi_temp_path ${folder}/uwsgi;
	scgi_temp_path ${folder}/scgi;
	keepalive_requests 1000000000;
	proxy_read_timeout 3600s;
	upstream model { server 127.0.0.1:${upstreamPort}; keepalive 4096; keepalive_requests 1000000000; }
	server {
		listen 127.0.0.1:${port} backlog=8192;
		location / {
			proxy_pass http://model;
			proxy_http_version 1.1;
			proxy_set_header Connection "";
		}
	}
}
`;
}

/**
 * Undefined unless its package is installed, in this project or in the folder PORTKEY_HOME. It is no dependency: a figure
 * to compare with.
 */
export async function startPortkey(upstreamPort: number): Promise<Gateway | undefined> {
	let entry: string;
	try {
		const from = process.env.PORTKEY_HOME ?? import.meta.dir;
		entry = createRequire(join(from, "x.js")).resolve("@portkey-ai/gateway/build/start-server.js");
	} catch {
		return undefined;
	}
	const node = Bun.which("node");
	if (!node || !existsSync(entry)) return undefined;
	const port = freePort();
	const child = Bun.spawn(onGatewayCore([node, entry, "--headless", `--port=${port}`]), {
		env: { ...baseEnvironment(), NODE_ENV: "production" },
		stdout: "ignore",
		stderr: "ignore",
	});
	await untilListening(port);
	const headers = `x-portkey-provider: openai\r\nx-portkey-custom-host: http://127.0.0.1:${upstreamPort}/v1\r\n`;
	// Its 1.15.2 answers every streamed request to a custom host with 500.
	return { ...processGateway("Portkey", port, child, headers), streams: false };
}

/**
 * Undefined unless the folder LITELLM_HOME is a virtual environment of Python with `litellm[proxy]` in it. It runs with one
 * worker and without keys, database or log: what its accounting costs comes on top.
 */
export async function startLitellm(upstreamPort: number, folder: string): Promise<Gateway | undefined> {
	const program = join(process.env.LITELLM_HOME ?? "/nonexistent", "bin/litellm");
	if (!existsSync(program)) return undefined;
	const port = freePort();
	mkdirSync(folder, { recursive: true });
	const config = join(folder, "litellm.yaml");
	writeFileSync(config, litellmConfig(upstreamPort));
	const argv = [program, "--config", config, "--host", "127.0.0.1", "--port", String(port), "--num_workers", "1"];
	const child = Bun.spawn(onGatewayCore(argv), {
		cwd: folder,
		env: {
			...baseEnvironment(),
			LITELLM_MODE: "PRODUCTION",
			LITELLM_LOG: "ERROR",
			LITELLM_LOCAL_MODEL_COST_MAP: "True",
			LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY: "true",
			NO_PROXY: "127.0.0.1",
		},
		stdout: "ignore",
		stderr: "ignore",
	});
	await untilListening(port, LITELLM_START_DEADLINE_MS);
	return processGateway("LiteLLM", port, child);
}

function litellmConfig(upstreamPort: number): string {
	const model = (name: string) =>
		`  - model_name: ${name}
    litellm_params: { model: openai/${name}, api_base: "http://127.0.0.1:${upstreamPort}/v1", api_key: none }
`;
	return `model_list:\n${["plain", "stream", "burst", "talk"].map(model).join("")}litellm_settings: { telemetry: false }\n`;
}

/** The upstream itself, for what a gateway adds. */
export function directGateway(upstreamPort: number): Gateway {
	return { name: "direct", port: upstreamPort, headers: "", streams: true, pids: () => [], stop: async () => {} };
}

export function freePort(): number {
	const probe = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
	const { port } = probe;
	probe.stop(true);
	return port;
}

async function untilListening(port: number, deadlineMs = START_DEADLINE_MS): Promise<void> {
	const giveUpAt = performance.now() + deadlineMs;
	while (performance.now() < giveUpAt) {
		const open = await Bun.connect({ hostname: "127.0.0.1", port, socket: { data() {} } }).then(
			(socket) => {
				socket.end();
				return true;
			},
			() => false,
		);
		if (open) return;
		await Bun.sleep(20);
	}
	throw new Error("a gateway did not begin to listen");
}
