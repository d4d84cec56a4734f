import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { createKey } from "../../src/keys/key-admin.ts";
import { createDigest } from "../../src/keys/secret.ts";
import { createKeepAliveClient, type Exchange } from "../chaos/keep-alive-client.ts";
import { quietPort, type ServeProcess, startServe } from "../chaos/serve-process.ts";
import { atEnd, testsMayTake } from "../support/at-end.ts";
import { withDatabase } from "../support/database.ts";
import { LONG } from "../support/long-form.ts";
import { paidAccount } from "../support/paid-account.ts";
import { childrenWithRole, isRunning } from "../support/processes.ts";
import { requestsTo } from "../support/requests.ts";
import { PEPPER, serviceFolder } from "../support/service-folder.ts";
import { reply, withUpstream } from "../support/upstream-server.ts";
import { waitFor } from "../support/wait.ts";

testsMayTake(120_000);

const CLIENTS = LONG ? 12 : 4;
/** Number of answers that the clients must receive before and after each kill or restart of a worker. */
const ANSWERS = LONG ? 200 : 24;
const SCRAPED = LONG ? 40 : 24;
const CHAT = JSON.stringify({ model: "test-model", messages: [{ role: "user", content: "one two three" }] });

const database = await withDatabase();
const upstream = withUpstream("vllm");
const { folder, environment } = serviceFolder(database, upstream.url, "        max_concurrency: 512\n");
const { statements } = database;
const accountId = await paidAccount(statements);
const maker = { statements, digest: createDigest(PEPPER), serviceName: "service" };
const secret = (await createKey(maker, accountId, { name: "k" })).secret;

const running: ServeProcess[] = [];
atEnd(async () => {
	for (const supervisor of running) {
		supervisor.kill("SIGINT");
		await supervisor.exited;
	}
});

let shared: ReturnType<typeof startWorkers> | undefined;
/** Starts the shared service at the first use, because the start takes most of these tests' time. */
function sharedWorkers() {
	shared ??= startWorkers("worked", 2);
	return shared;
}

async function startWorkers(name: string, workers: number) {
	const more = { ROLE: "all", PORT: String(quietPort()), WORKERS: String(workers), DRAIN_S: "10" };
	const supervisor = await startServe(environment(name, more), { ready: "all processes are ready" });
	running.push(supervisor);
	const root = join(folder, name, "journal");
	return {
		supervisor,
		url: supervisor.url,
		workerPids: () => childrenWithRole(supervisor.pid, "gateway"),
		journals: () => (existsSync(root) ? [...new Bun.Glob("*/*").scanSync({ cwd: root, onlyFiles: false })] : []),
	};
}

const liveInstances = async (name: string): Promise<number> =>
	(await database.sql`select 1 from instance_now where id like ${`${name}%`} and state = 'live'`).length;

const isRefused = (url: string): Promise<boolean> =>
	fetch(`${url}/livez`, { keepalive: false, signal: AbortSignal.timeout(500) }).then(
		() => false,
		(error) => error.code === "ECONNREFUSED",
	);

/** Starts clients that keep their connections alive and do not retry a request. */
function keepAsking(url: string, clients: number) {
	const ended: Exchange[] = [];
	let stopping = false;
	const loops = Array.from({ length: clients }, async (_, at) => {
		const client = createKeepAliveClient(url);
		while (!stopping) {
			ended.push(await client.ask({ method: "POST", path: "/v1/chat/completions", secret, body: CHAT }));
			// One client in four uses a new connection per request; another one leaves its connection idle for a while.
			if (at % 4 === 1) client.close();
			await Bun.sleep(at % 4 === 0 ? 120 : 60);
		}
		client.close();
	});
	return {
		ended,
		async stop() {
			stopping = true;
			await Promise.all(loops);
			return ended;
		},
	};
}

/** Requests a console page repeatedly, with a new connection each time. */
function keepVisiting(url: string) {
	const statuses: Record<string, number> = {};
	let stopping = false;
	const sessions = (async () => {
		while (!stopping) {
			const client = createKeepAliveClient(url);
			// The kernel may reset connections that are queued at a listener when it closes.
			const { status } = await client.ask({ method: "GET", path: "/api/console/public/config", secret: "none" });
			if (status !== 0) statuses[status] = (statuses[status] ?? 0) + 1;
			client.close();
			await Bun.sleep(50);
		}
	})();
	return {
		async stop() {
			stopping = true;
			await sessions;
			return statuses;
		},
	};
}

const answersOf = (ended: readonly Exchange[]) => {
	const counts: Record<string, number> = {};
	for (const { status, fresh } of ended) {
		const name = status === 0 ? (fresh ? "reset, new connection" : "reset, kept connection") : String(status);
		counts[name] = (counts[name] ?? 0) + 1;
	}
	return counts;
};

/** Expects a scrape to return the metrics of both workers and the console, whichever worker answers it. */
async function expectOneScrapeForAll(url: string): Promise<void> {
	const once = { headers: { connection: "close" } };
	const asked = { method: "POST", headers: { ...once.headers, authorization: `Bearer ${secret}` }, body: CHAT };
	const refused = await Promise.all(
		Array.from({ length: SCRAPED }, async () => {
			const answer = await fetch(`${url}/v1/chat/completions`, asked);
			const text = await answer.text();
			return answer.status === 200 ? [] : [`${answer.status} ${text}`];
		}),
	);
	expect(refused.flat()).toEqual([]);
	const workers = new Set<string>();
	const upIn = (text: string) =>
		[...text.matchAll(/^tollgate_worker_up\{worker="([^"]+)"\} 1$/gm)].map(([, worker]) => worker).toSorted();
	for (let scrape = 0; scrape < (LONG ? 8 : 4); scrape++) {
		let text = "";
		// Retries, because a scrape omits the metrics of a process that is busy for a moment.
		await waitFor(async () => {
			text = await (await fetch(`${url}/metrics`, once)).text();
			return upIn(text).length === 3;
		}, "all three to be up");
		const requests = [...text.matchAll(/^tollgate_requests_total\{.*worker="([^"]+)"\} (\d+)$/gm)];
		for (const [, worker] of requests) workers.add(worker as string);
		expect(requests.reduce((sum, [, , count]) => sum + Number(count), 0)).toBe(SCRAPED);
		expect(upIn(text)).toEqual(["console", "gateway-1", "gateway-2"]);
		expect(text.match(/^# TYPE tollgate_admitting gauge$/gm)).toHaveLength(1);
		expect(text.match(/^tollgate_admitting\{worker="gateway-[12]"\} 1$/gm)).toHaveLength(2);
	}
	expect([...workers].toSorted()).toEqual(["gateway-1", "gateway-2"]);
}

describe("two gateway processes that listen on one port", () => {
	test("share the requests, and each reports the metrics of both", async () => {
		const service = await sharedWorkers();
		expect(service.workerPids()).toHaveLength(2);
		expect(await liveInstances("worked")).toBe(2);
		await expectOneScrapeForAll(service.url);
	});

	test("are both replaced by a rolling restart without a refused request", async () => {
		const service = await sharedWorkers();
		const old = service.workerPids();
		const load = keepAsking(service.url, CLIENTS);
		await waitFor(() => load.ended.length > ANSWERS, "the load to run");
		const people = keepVisiting(service.url);
		const consoles = childrenWithRole(service.supervisor.pid, "console");
		const from = service.supervisor.lines.length;
		service.supervisor.kill("SIGUSR2");
		await service.supervisor.logged(
			(line) => line.message === "all processes were replaced",
			"the end of the roll",
			from,
		);
		const answers = answersOf(await load.stop());
		console.log(`rolling restart of two workers under keep-alive load: ${JSON.stringify(answers)}`);
		expect(service.workerPids().filter((pid) => old.includes(pid))).toEqual([]);
		expect(service.workerPids()).toHaveLength(2);
		expect(childrenWithRole(service.supervisor.pid, "console")).not.toEqual(consoles);
		// No page request fails, because the new console listens before the old one ends.
		const { "200": visited = 0, ...turnedAway } = await people.stop();
		expect(visited).toBeGreaterThan(ANSWERS / 4);
		expect(turnedAway).toEqual({});
		const { "200": served = 0, "reset, new connection": inQueue = 0, ...others } = answers;
		expect(served).toBeGreaterThan(2 * ANSWERS);
		expect(others).toEqual({});
		// Closing a listener resets the connections in its queue, except on Linux: two listeners, each with at most one
		// connection per client.
		expect(inQueue).toBeLessThanOrEqual(process.platform === "linux" ? 0 : 2 * CLIENTS);
	});

	test("finish their streams after SIGTERM, and the console stops last", async () => {
		const service = await sharedWorkers();
		const looked = Promise.withResolvers<void>();
		// The stream lasts longer than a draining worker's listener stays open.
		upstream.next(
			reply()
				.text(Array.from({ length: 60 }, (_, at) => ` w${at}`))
				.trickle(55)
				.pauseAfter(59, looked.promise),
		);
		const [consolePid = 0] = childrenWithRole(service.supervisor.pid, "console");
		const response = await requestsTo(service.url).chat(secret, { ...JSON.parse(CHAT), stream: true });
		expect(response.status).toBe(200);
		service.supervisor.kill("SIGTERM");
		let text = "";
		for await (const piece of response.body as unknown as AsyncIterable<Uint8Array>) {
			text += Buffer.from(piece).toString();
			if (!text.includes("w58") || text.includes("w59")) continue;
			await waitFor(() => isRefused(service.url), "the last door to be shut");
			expect(isRunning(consolePid)).toBe(true);
			looked.resolve();
		}
		expect(text).toEndWith("data: [DONE]\n\n");
		expect(text).toContain("w59");
		expect(await service.supervisor.exited).toBe(0);
		expect(service.journals()).toEqual([]);
		expect(await liveInstances("worked")).toBe(0);
	});
});
