/** Gateway and console as processes: a fault of one process does not affect the other. */
import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { quietPort, startServe } from "../chaos/serve-process.ts";
import { newPerson, operator, PERSON_ENV, type Person, signedUp, topUp } from "../console/person.ts";
import { atEnd, testsMayTake } from "../support/at-end.ts";
import { withDatabase } from "../support/database.ts";
import { LONG } from "../support/long-form.ts";
import { childrenWithRole, environmentOf, isRunning } from "../support/processes.ts";
import { requestsTo } from "../support/requests.ts";
import { serviceFolder } from "../support/service-folder.ts";
import { reply, withUpstream } from "../support/upstream-server.ts";
import { waitFor } from "../support/wait.ts";

testsMayTake(120_000);

const OF_CONSOLE = {
	CONSOLE_SECRET: "canary-session-secret-0123456789abcdef",
	STRIPE_SECRET_KEY: "sk_test_canary0123456789",
	STRIPE_WEBHOOK_SECRET: "whsec_canary0123456789",
	GITHUB_CLIENT_ID: "canary-github",
	GITHUB_CLIENT_SECRET: "canary-github-secret",
	GOOGLE_CLIENT_ID: "canary-google",
	GOOGLE_CLIENT_SECRET: "canary-google-secret",
	TRANSFER_DETAILS: "canary-bank-details",
};
const OF_GATEWAY = { MODEL_SERVER_KEY: "canary-key-of-a-model-server" };
/** Rounds of requests while another process is down. */
const ROUNDS = LONG ? 20 : 5;
const ask = { model: "test-model", messages: [{ role: "user", content: "one two three" }] };

const database = await withDatabase();
const upstream = withUpstream("vllm");
const extra = `        api_key: \${MODEL_SERVER_KEY}\n`;
const { folder, environment } = serviceFolder(database, upstream.url, extra);
const more = { ...PERSON_ENV, ROLE: "all", PORT: String(quietPort()), LEASE_TTL_S: "20", DRAIN_S: "2" };
const served = await startServe(
	{ ...environment("data", more), ...OF_CONSOLE, ...OF_GATEWAY },
	{ ready: "all processes are ready" },
);
atEnd(async () => {
	served.kill("SIGKILL");
	await served.exited;
});
const { url } = served;
const service = { url, db: database };
const customer = await signedUp(service);
const boss = await operator(service);
await topUp(customer, boss);
const { key, secret } = (await customer.send("POST", "/api/console/keys", { name: "k" })).body;

const gatewayPid = () => childrenWithRole(served.pid, "gateway")[0] ?? 0;
const consolePid = () => childrenWithRole(served.pid, "console")[0] ?? 0;
const chat = (init?: RequestInit) => requestsTo(url).chat(secret, ask, init);
/** Suspends the parent process during `work`, so that it restarts no process. */
async function whileParentSleeps(work: () => Promise<void>): Promise<void> {
	process.kill(served.pid, "SIGSTOP");
	try {
		await work();
	} finally {
		process.kill(served.pid, "SIGCONT");
	}
}
async function kill(pid: number): Promise<void> {
	process.kill(pid, "SIGKILL");
	await waitFor(() => !isRunning(pid), "its end");
}

test("each process gets only the secrets that it needs", () => {
	const [gateway, console] = [environmentOf(gatewayPid()), environmentOf(consolePid())];
	for (const [name, value] of Object.entries(OF_CONSOLE)) {
		expect([name, console[name]]).toEqual([name, value]);
		expect([name, gateway[name]]).toEqual([name, undefined]);
	}
	expect(JSON.stringify(gateway)).not.toMatch(/canary-(session|github|google|bank)|sk_test_canary|whsec_canary/);
	expect(gateway.MODEL_SERVER_KEY).toBe(OF_GATEWAY.MODEL_SERVER_KEY);
	expect(JSON.stringify(console)).not.toContain("canary-key-of-a-model-server");
	expect(gateway.KEY_PEPPER).toBe(console.KEY_PEPPER as string);
	expect(gateway.INTERNAL_SECRET).toMatch(/^[0-9a-f]{64}$/);
});

test("a log line names the process that wrote it", async () => {
	// Waits for the children's own lines, because the parent's "all ready" may be written earlier.
	for (const message of ["this instance is live", "the console is ready"])
		await served.logged((line) => line.message === message, message);
	const by = (message: string) => served.lines.filter((line) => line.message === message).map((line) => line.process);
	expect(by("this instance is live")).toEqual(["gateway-1"]);
	expect(by("the console is ready")).toEqual(["console"]);
	expect(by("all processes are ready")).toEqual(["parent"]);
});

test("SIGUSR1 switches debug logs in every process, including restarted ones", async () => {
	const settled = () => served.lines.filter((line) => line.message === "a request was settled");
	const levelled = (process: string, leastLevel: string, from: number) =>
		served.logged(
			(line) => line.message === "log level changed" && line.process === process && line.leastLevel === leastLevel,
			`${process} at ${leastLevel}`,
			from,
		);
	const turn = async (leastLevel: string) => {
		const from = served.lines.length;
		served.kill("SIGUSR1");
		await Promise.all(["parent", "gateway-1", "console"].map((process) => levelled(process, leastLevel, from)));
	};
	await (await chat()).text();
	expect(settled()).toEqual([]);
	await turn("debug");
	await (await chat()).text();
	const line = await served.logged(({ message }) => message === "a request was settled", "the settlement");
	expect(line).toMatchObject({
		level: "debug",
		account: customer.accountId,
		key: key.id,
		model: "test-model",
		status: 200,
	});
	expect(line.request).toMatch(/^req_[0-9a-f]{32}$/);
	expect(JSON.stringify(line)).not.toContain("two three");
	const from = served.lines.length;
	await kill(gatewayPid());
	await levelled("gateway-1", "debug", from);
	await turn("info");
	const before = settled().length;
	await (await chat()).text();
	// A process writes its lines in order. If the next line is about the signal, the request before wrote none.
	const later = served.lines.length;
	process.kill(gatewayPid(), "SIGUSR1");
	await levelled("gateway-1", "debug", later);
	expect(settled().length).toBe(before);
	process.kill(gatewayPid(), "SIGUSR1");
	await levelled("gateway-1", "info", later);
});

const figures = async (name: string) => {
	const text = await (await fetch(`${url}/metrics`)).text();
	return text.split("\n").filter((line) => line.includes(name) && !line.startsWith("#"));
};

test("metrics include each process's loop lag, which clients cannot read per process", async () => {
	let told: string[] = [];
	// The metrics omit a process that does not answer in time, so the test tries again.
	await waitFor(async () => {
		told = (await figures("event_loop_lag")).map((line) => line.replace(/ [^ ]+$/, ""));
		return told.length === 6;
	}, "the figures of both processes");
	const lag = (name: string, worker: string) =>
		["0.5", "0.99", "1"].map((quantile) => `${name}{quantile="${quantile}",worker="${worker}"}`);
	expect(told).toEqual([
		...lag("process_event_loop_lag_seconds", "gateway-1"),
		...lag("tollgate_console_event_loop_lag_seconds", "console"),
	]);
	const asked = await fetch(`${url}/process-metrics`, { headers: { "x-tollgate-process-metrics": "yes" } });
	expect(await asked.text()).not.toContain("process_");
});

test("a hanging console does not delay inference requests", async () => {
	const pid = consolePid();
	process.kill(pid, "SIGSTOP");
	try {
		expect(await figures('worker="console"')).toEqual(['tollgate_worker_up{worker="console"} 0']);
		const page = customer.get("/api/console/overview");
		for (let round = 0; round < ROUNDS; round++) expect((await chat()).status).toBe(200);
		expect((await fetch(`${url}/readyz`)).status).toBe(200);
		expect((await fetch(`${url}/status`)).status).toBe(200);
		process.kill(pid, "SIGCONT");
		expect((await page).status).toBe(200);
	} finally {
		process.kill(pid, "SIGCONT");
	}
});

// In the short run, `cli/liveness.test.ts` covers the detection of a hanging process.
test.if(LONG)("a console that hangs is replaced while inference continues", async () => {
	const hung = consolePid();
	process.kill(hung, "SIGSTOP");
	await waitFor(
		async () => {
			expect((await chat()).status).toBe(200);
			await Bun.sleep(250);
			return !isRunning(hung);
		},
		"the end of the console that hangs",
		60_000,
	);
	const isEnding = ({ message }: { message: string }) => message === "a process does not answer; ending it";
	expect(await served.logged(isEnding, "the end of the console that hangs")).toMatchObject({
		child: "console",
		process: "parent",
	});
	await waitFor(async () => (await customer.get("/api/console/me")).status === 200, "the console", 30_000);
	expect(consolePid()).not.toBe(hung);
});

test("inference continues after kill -9 of the console, which is restarted", async () => {
	const old = consolePid();
	upstream.next(
		reply()
			.text(Array.from({ length: 20 }, (_, at) => ` w${at}`))
			.trickle(20),
	);
	const stream = await chat({ body: JSON.stringify({ ...ask, stream: true }) });
	await whileParentSleeps(async () => {
		await kill(old);
		for (let round = 0; round < ROUNDS; round++) expect((await chat()).status).toBe(200);
		expect(await stream.text()).toEndWith("data: [DONE]\n\n");
		const [page, refused] = await Promise.all([
			fetch(`${url}/overview`, { headers: { accept: "text/html" } }),
			customer.send("POST", "/api/console/keys", { name: "other" }),
		]);
		expect([page.status, (await page.text()).includes("The console is restarting")]).toEqual([503, true]);
		expect([refused.status, refused.body.error.code]).toEqual([503, "service_unavailable"]);
		expect(await readiness()).toEqual([200, ["the console does not answer"]]);
	});
	await waitFor(async () => (await customer.get("/api/console/me")).status === 200, "the console", 30_000);
	expect(consolePid()).not.toBe(old);
	await waitFor(async () => isDeepStrictEqual(await readiness(), [200, []]), "a readiness without a warning");
});

/** The gateway's warnings, except the one about the test database without fsync. */
async function readiness(): Promise<[status: number, warnings: string[]]> {
	const ready = await fetch(`${url}/readyz`);
	const { warnings } = (await ready.json()) as { warnings: string[] };
	return [ready.status, warnings.filter((text) => !text.startsWith("synchronous_commit is off"))];
}

test("the console finds the new gateway after kill -9 of the gateway", async () => {
	const [people, old] = [consolePid(), gatewayPid()];
	const socket = join(environmentOf(people).RUN_DIR ?? "", "console.sock");
	const behind = personAt(socket, customer);
	await waitFor(async () => (await behind("/readyz")).warnings.length === 0, "the console to miss nothing");
	await whileParentSleeps(async () => {
		await kill(old);
		// Ends the lease in Postgres instead of waiting for its end.
		await database.sql`update instance_beat set lease_until = now() - interval '1 minute' where state = 'live'`;
		await waitFor(async () => (await behind("/readyz")).warnings.length > 0, "the console to notice");
		expect((await behind("/readyz")).warnings).toEqual(["no gateway is live: no model can be asked"]);
		const { items } = await behind("/api/console/public/models");
		expect(items).toMatchObject([{ id: "test-model", status: "unavailable" }]);
		const refused = await behind(`/api/console/playground/chat?key=${key.id}`, ask);
		expect(refused.error.message).toContain("No gateway is running");
	});
	await waitFor(async () => (await chat().catch(() => undefined))?.status === 200, "a new gateway", 20_000);
	expect(gatewayPid()).not.toBe(old);
	expect(consolePid()).toBe(people);
	const played = await customer.send("POST", `/api/console/playground/chat?key=${key.id}`, ask);
	expect([played.status, played.body.choices?.[0].message.content]).toEqual([200, "echo: one two three"]);
	await waitFor(async () => (await behind("/readyz")).warnings.length === 0, "the console to see it");
});

test("a playground chat streams through both planes, and ends when its client leaves", async () => {
	const before = upstream.requests.length;
	upstream.next(
		reply()
			.text(Array.from({ length: 500 }, (_, at) => ` w${at}`))
			.trickle(20),
	);
	const leave = new AbortController();
	const response = await customer.fetch(`/api/console/playground/chat?key=${key.id}`, {
		method: "POST",
		headers: { origin: url, "content-type": "application/json" },
		body: JSON.stringify({ ...ask, stream: true }),
		signal: leave.signal,
	});
	expect(response.headers.get("content-type")).toContain("text/event-stream");
	const reader = (response.body as ReadableStream<Uint8Array>).getReader();
	let text = "";
	while (!text.includes(" w2")) text += new TextDecoder().decode((await reader.read()).value);
	leave.abort();
	await upstream.waitForAbort(before + 1);
});

test("a gateway's internal address refuses requests without the current run's token", async () => {
	const { RUN_DIR = "" } = environmentOf(gatewayPid());
	expect(readdirSync(RUN_DIR).toSorted()).toEqual(["console.sock", "gateway-1.sock"]);
	const knock = (path: string, headers: Record<string, string> = {}) =>
		fetch(`http://gateway${path}`, {
			unix: join(RUN_DIR, "gateway-1.sock"),
			method: "POST",
			headers: { "content-type": "application/json", ...headers },
			body: JSON.stringify(ask),
		} as BunFetchRequestInit);
	expect((await knock("/v1/chat/completions")).status).toBe(403);
	// An API key is valid only at the public port, not at this internal address.
	expect((await knock("/v1/chat/completions", { authorization: `Bearer ${secret}` })).status).toBe(403);
	expect((await knock("/readyz")).status).toBe(404);
	expect((await knock("/v1/models")).status).toBe(404);
});

test("a sign-in records the client address that the gateway determined", async () => {
	const person = newPerson(service, customer.email);
	const answer = await person.send(
		"POST",
		"/api/auth/sign-in/email",
		{ email: customer.email, password: "correct horse battery staple" },
		{ "x-real-ip": "6.6.6.6", forwarded: "for=6.6.6.6", "x-tollgate-client": "6.6.6.6" },
	);
	expect(answer.status).toBe(200);
	const [session] = await database.sql`select ip_address from session order by created_at desc limit 1`;
	expect(session?.ip_address).toMatch(/^10\.0\./);
});

test("workers end with their parent, return their credit and print only log lines", async () => {
	const pids = [gatewayPid(), consolePid()];
	served.kill("SIGKILL");
	await waitFor(() => !pids.some(isRunning), "the workers to end", 30_000);
	expect((await database.sql`select 1 from instance_now where state = 'live'`).length).toBe(0);
	const journals = new Bun.Glob("*/*").scanSync({ cwd: join(folder, "data", "journal"), onlyFiles: false });
	expect([...journals]).toEqual([]);
	await served.exited;
	expect(served.lines.filter((line) => line.level === "raw")).toEqual([]);
});

/** Sends a person's requests to the console's socket, as a gateway would. */
function personAt(socket: string, person: Person) {
	const cookie = [...person.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
	return async (path: string, body?: unknown) => {
		const response = await fetch(`http://127.0.0.1${path}`, {
			unix: socket,
			headers: { cookie, origin: url, "content-type": "application/json", "x-forwarded-for": "10.0.0.1" },
			...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
		} as BunFetchRequestInit);
		return response.json();
	};
}
