import { expect, test } from "bun:test";
import { createKeepAliveClient } from "../chaos/keep-alive-client.ts";
import { startServe } from "../chaos/serve-process.ts";
import { atEnd } from "../support/at-end.ts";
import { withDatabase } from "../support/database.ts";
import { LONG } from "../support/long-form.ts";
import { childrenWithRole, isRunning } from "../support/processes.ts";
import { serviceFolder } from "../support/service-folder.ts";
import { waitFor } from "../support/wait.ts";

const database = await withDatabase();
const { environment } = serviceFolder(database);
/** The listener accepts connections for a quarter of the drain time. */
const DRAIN_S = "16";
const LIVE = { method: "GET", path: "/livez", secret: "none" };
const PAGE = { ...LIVE, path: "/api/console/public/config" };
const ready = async (url: string) => {
	const answer = await fetch(`${url}/readyz`, { headers: { connection: "close" } });
	return { status: answer.status, reasons: ((await answer.json()) as { reasons: string[] }).reasons };
};

for (const [role, started, asked] of [
	["all", "all processes are ready", [LIVE, PAGE]],
	// Services with one plane and with two share the code, so only the long form tests single planes.
	...(LONG
		? ([
				["gateway", "listening", [LIVE]],
				["console", "listening", [LIVE, PAGE]],
			] as const)
		: []),
] as const)
	test(`a stopping ${role} is not ready and closes idle connections after one answer`, async () => {
		const server = await startServe(environment(role, { ROLE: role, DRAIN_S }), { ready: started });
		const kept = asked.map((request) => ({ request, client: createKeepAliveClient(server.url) }));
		for (const { request, client } of kept)
			expect(await client.ask(request)).toEqual({ status: 200, fresh: true, last: false });
		server.kill("SIGTERM");
		await waitFor(async () => (await ready(server.url)).status === 503, "it to say that it stops");
		expect((await ready(server.url)).reasons).toEqual(["the instance is stopping"]);
		for (const { request, client } of kept)
			expect(await client.ask(request)).toEqual({ status: 200, fresh: false, last: true });
		expect(await server.exited).toBe(0);
	}, 60_000);

test("a second signal to the parent process ends all children, even one that hangs", async () => {
	const twice = environment("twice", { ROLE: "all", DRAIN_S });
	const server = await startServe(twice, { ready: "all processes are ready" });
	const [gateway = 0] = childrenWithRole(server.pid, "gateway");
	process.kill(gateway, "SIGSTOP");
	atEnd(() => isRunning(gateway) && process.kill(gateway, "SIGKILL"));
	// Sends the signal again until it counts as a second one: two signals within a second count as one.
	await waitFor(() => {
		server.kill("SIGTERM");
		return !isRunning(server.pid);
	}, "the parent's end");
	await waitFor(() => !isRunning(gateway), "the gateway's end");
	expect(await server.exited).toBe(1);
}, 60_000);
