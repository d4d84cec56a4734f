import fs from "node:fs";
import type { ModelSpec } from "../../catalog/model.ts";
import type { Config } from "../../config.ts";
import { type Finding, findingsOf, reasonOf } from "./finding.ts";

/** What the service opens besides its clients and model servers. */
const OWN_FILES = 256;
const OPEN_FILES_MIN = 4_096;
const OUT_PORTS_MIN = 10_000;
const ASK_MS = 3_000;

/** What is asked of the system. */
interface System {
	/** First and last port that connections go out from; empty where it does not say. */
	portRange(): string;
	/** Listens and stops at once. */
	listen(host: string, port: number): void;
}

const THIS_SYSTEM: System = {
	portRange: () => textOf("/proc/sys/net/ipv4/ip_local_port_range"),
	listen: (hostname, port) => Bun.listen({ hostname, port, socket: { data() {} } }).stop(true),
};

/** What the system and the runtime allow, beside what the catalogue asks for. */
export async function checkLimits(
	config: Config,
	models: readonly ModelSpec[],
	system: Partial<System> = {},
): Promise<readonly Finding[]> {
	const { portRange, listen } = { ...THIS_SYSTEM, ...system };
	const found = findingsOf("limits");
	const concurrency = concurrencyOf(models);
	checkOpenFiles(concurrency, found);
	checkOutPorts(portRange(), found);
	checkFetches(config, concurrency, found);
	await checkPort(config, listen, found);
	return found.list;
}

/** Calls that all replicas together may have at once. A server that serves two models is counted for both. */
function concurrencyOf(models: readonly ModelSpec[]): number {
	return models.flatMap(({ upstreams }) => upstreams).reduce((sum, { maxConcurrency }) => sum + maxConcurrency, 0);
}

/** A streamed answer takes one to its client and one to its model server. */
function checkOpenFiles(concurrency: number, found: ReturnType<typeof findingsOf>): void {
	const text = textOf("/proc/self/limits");
	const soft = Number(/^Max open files +(\d+)/m.exec(text)?.[1] ?? Number.NaN);
	if (Number.isNaN(soft)) return;
	const wanted = Math.max(OPEN_FILES_MIN, 2 * concurrency + OWN_FILES);
	if (soft >= wanted) found.ok(`${soft} open files are allowed`);
	else
		found.warn(
			`${soft} open files are allowed; the catalogue's concurrency wants ${wanted}`,
			`Raise the limit: \`ulimit -n ${wanted}\`, LimitNOFILE= of the unit, or --ulimit nofile= of the container.`,
		);
}

/** Each connection to a model server takes one. */
function checkOutPorts(range: string, found: ReturnType<typeof findingsOf>): void {
	const [first, last] = range.split(/\s+/).map(Number);
	if (first === undefined || last === undefined || !(last > first)) return;
	const ports = last - first + 1;
	if (ports >= OUT_PORTS_MIN) found.ok(`${ports} ports are there for connections to model servers`);
	else
		found.warn(
			`only ${ports} ports are there for connections to model servers`,
			'`sysctl net.ipv4.ip_local_port_range="10240 65535"`',
		);
}

/** The runtime lets later fetches wait without a word. `serve` raises this by itself where nobody has set it. */
function checkFetches({ env }: Config, concurrency: number, found: ReturnType<typeof findingsOf>): void {
	if (!env.BUN_CONFIG_MAX_HTTP_REQUESTS) {
		found.ok("concurrent fetches are raised to the runtime's most at the start");
		return;
	}
	const slots = Number(env.BUN_CONFIG_MAX_HTTP_REQUESTS);
	if (slots >= concurrency) found.ok(`${slots} concurrent fetches are allowed`);
	else
		found.broken(
			`BUN_CONFIG_MAX_HTTP_REQUESTS allows ${env.BUN_CONFIG_MAX_HTTP_REQUESTS} fetches at once, the catalogue ${concurrency}: the others would wait unseen`,
			"Take the variable away: `serve` then sets the most.",
		);
}

async function checkPort(
	{ host, port }: Config,
	listen: System["listen"],
	found: ReturnType<typeof findingsOf>,
): Promise<void> {
	if (port === 0) {
		found.note("PORT=0: the system chooses one at each start");
		return;
	}
	const address = `${host}:${port}`;
	try {
		listen(host, port);
		found.ok(`${address} is free`);
	} catch (error) {
		const { code } = error as { code?: unknown };
		if (code === "EADDRINUSE" && (await isOurs(host, port))) found.ok(`${address} is served by Tollgate now`);
		else if (code === "EADDRINUSE")
			found.broken(`${address} is taken by another program`, "Set PORT to another port, or stop that program.");
		else if (code === "EACCES")
			found.broken(
				`${address} is not for this user`,
				"Set PORT to 1024 or more, or give the program CAP_NET_BIND_SERVICE.",
			);
		else
			found.broken(`${address} cannot be listened on: ${reasonOf(error)}`, "Set HOST to an address of this machine.");
	}
}

async function isOurs(host: string, port: number): Promise<boolean> {
	const reachable = { "0.0.0.0": "127.0.0.1", "::": "::1" }[host] ?? host;
	const origin = `http://${reachable.includes(":") ? `[${reachable}]` : reachable}:${port}`;
	try {
		const options = { signal: AbortSignal.timeout(ASK_MS), redirect: "manual", proxy: "" } as const;
		const [live, status] = await Promise.all(["/livez", "/status"].map((path) => fetch(`${origin}${path}`, options)));
		return (await live?.text()) === "ok\n" && status?.status === 200;
	} catch {
		return false;
	}
}

function textOf(path: string): string {
	try {
		return fs.readFileSync(path, "utf8");
	} catch {
		return "";
	}
}
