/** The gateways to compare, each a process on the gateway's core, all with the same model server. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { quietPort } from "../chaos/serve-process.ts";
import { waitFor } from "../support/wait.ts";
import { onGatewayCore } from "./machine.ts";
import { processTree } from "./process-usage.ts";

export interface Gateway {
	readonly name: string;
	readonly port: number;
	pids(): number[];
	stop(): Promise<void>;
}

/** Runs a program that prints `{"port":…}` in its first line. */
export async function startPortPrinter(
	name: string,
	argv: readonly string[],
	env: Record<string, string> = {},
): Promise<Gateway> {
	const child = Bun.spawn([...argv], { env: { ...baseEnvironment(), ...env }, stdout: "pipe", stderr: "inherit" });
	const reader = child.stdout.getReader();
	const { value } = await reader.read();
	const line = new TextDecoder().decode(value).split("\n")[0] ?? "";
	if (!line.startsWith("{")) throw new Error(`${name} did not start`);
	return processGateway(name, (JSON.parse(line) as { port: number }).port, child);
}

export function processGateway(name: string, port: number, child: Bun.Subprocess): Gateway {
	return {
		name,
		port,
		pids: () => processTree(child.pid),
		async stop() {
			child.kill("SIGTERM");
			await child.exited;
		},
	};
}

/** The complete environment of every process, so that the caller's environment has no effect. */
export function baseEnvironment(): Record<string, string> {
	return { PATH: process.env.PATH ?? "", HOME: process.env.HOME ?? "/", BUN_CONFIG_MAX_HTTP_REQUESTS: "65535" };
}

/** Starts the bare pass-through. With `reads` it parses a stream's events instead of relaying bytes. */
export function startBare(upstreamPort: number, secrets: readonly string[], reads = false): Promise<Gateway> {
	const script = join(import.meta.dir, "bare-pass-through.ts");
	const name = reads ? "bare Bun, reading" : "bare Bun";
	const settings = {
		READS: reads ? "1" : "0",
		UPSTREAM: `http://127.0.0.1:${upstreamPort}/v1`,
		KEYS: secrets.join(","),
		NODE_ENV: "production",
	};
	return startPortPrinter(name, onGatewayCore([process.execPath, script]), settings);
}

/** Starts nginx; undefined if it is not installed. */
export async function startNginx(upstreamPort: number, folder: string): Promise<Gateway | undefined> {
	if (!Bun.which("nginx")) return undefined;
	const port = quietPort();
	mkdirSync(folder, { recursive: true });
	writeFileSync(join(folder, "nginx.conf"), nginxConfig(port, upstreamPort, folder));
	const child = Bun.spawn(onGatewayCore(["nginx", "-c", join(folder, "nginx.conf"), "-e", join(folder, "error.log")]), {
		stdout: "ignore",
		stderr: "ignore",
	});
	const isOpen = () =>
		Bun.connect({ hostname: "127.0.0.1", port, socket: { data() {} } }).then(
			(socket) => Boolean(socket.end()) || true,
			() => false,
		);
	await waitFor(isOpen, "nginx to listen");
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

/** The model server without a gateway: the reference for the time that gateways add. */
export function directGateway(upstreamPort: number): Gateway {
	return { name: "direct", port: upstreamPort, pids: () => [], stop: async () => {} };
}
