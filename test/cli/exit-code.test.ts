import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { startServe } from "../chaos/serve-process.ts";
import { withDatabase } from "../support/database.ts";
import { LONG } from "../support/long-form.ts";
import { childrenWithRole } from "../support/processes.ts";
import { serviceFolder } from "../support/service-folder.ts";

/** Exit code 0 means a clean stop, whichever signal or command requested it. */

const database = await withDatabase();
const { folder, environment } = serviceFolder(database);
const A_BUG = "a bug: the service stops";

/** Writes a module that causes a bug when the program starts to listen for `event`; the program preloads it. */
function bugAfter(event: "unhandledRejection" | "SIGTERM"): string {
	const path = join(folder, `bug-after-${event}.ts`);
	const fail = 'Promise.reject(new Error("nobody looks after it"))';
	writeFileSync(
		path,
		event === "SIGTERM"
			? `process.once("SIGTERM", () => setTimeout(() => void ${fail}, 600));`
			: `const look = setInterval(() => {
				if (process.listenerCount(${JSON.stringify(event)}) === 0) return;
				clearInterval(look);
				${fail};
			}, 1);`,
	);
	return path;
}

// Both roles share the code, so the short form tests only the console.
for (const role of LONG ? ["gateway", "console"] : ["console"])
	test(`a ${role} that fails by a bug during its start exits 1`, async () => {
		const server = await startServe(environment(`starting-${role}`, { ROLE: role }), {
			preload: bugAfter("unhandledRejection"),
			ready: A_BUG,
		});
		expect(await server.exited).toBe(1);
	}, 60_000);

for (const role of LONG ? ["gateway", "console"] : ["gateway"])
	test(`a ${role} that fails by a bug during its stop exits 1`, async () => {
		const server = await startServe(environment(`stopping-${role}`, { ROLE: role, DRAIN_S: "1" }), {
			preload: bugAfter("SIGTERM"),
		});
		const { hostname, port } = new URL(server.url);
		// An unfinished request keeps the process draining; its listener closes after a quarter of the drain time.
		const slow = await Bun.connect({ hostname, port: Number(port), socket: { data() {} } });
		slow.write("GET /livez HTTP/1.1\r\n");
		server.kill("SIGTERM");
		await server.logged(({ message }) => message === A_BUG, A_BUG);
		expect(await server.exited).toBe(1);
	}, 60_000);

test("the parent process exits 1 and logs that its gateway was killed during a stop", async () => {
	const server = await startServe(environment("killed", { ROLE: "all", DRAIN_S: "4" }), {
		ready: "all processes are ready",
	});
	const [gateway = 0] = childrenWithRole(server.pid, "gateway");
	server.kill("SIGTERM");
	await server.logged(({ message, process }) => message === "stopping" && process === "gateway-1", "that it stops");
	process.kill(gateway, "SIGKILL");
	expect(await server.exited).toBe(1);
	expect(server.lines.filter(({ level }) => level === "error")).toMatchObject([
		{ process: "parent", message: "a stopping process did not exit cleanly", child: "gateway-1", signal: "SIGKILL" },
	]);
}, 60_000);

test.if(LONG)("a service stopped during a rolling restart does not log a completed restart", async () => {
	const server = await startServe(environment("replaced", { ROLE: "all", DRAIN_S: "4" }), {
		ready: "all processes are ready",
	});
	const from = server.lines.length;
	server.kill("SIGUSR2");
	await server.logged(({ message }) => message === "handing over to the successor", "that the first one leaves", from);
	server.kill("SIGTERM");
	expect(await server.exited).toBe(0);
	const said = server.lines.slice(from);
	expect(said.filter(({ process, level }) => process === "parent" || level === "error")).toEqual([]);
});
