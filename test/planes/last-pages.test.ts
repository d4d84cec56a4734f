import { expect, test } from "bun:test";
import { quietPort, startServe } from "../chaos/serve-process.ts";
import { operator, PERSON_ENV, signedUp, topUp } from "../console/person.ts";
import { atEnd, testsMayTake } from "../support/at-end.ts";
import { withDatabase } from "../support/database.ts";
import { LONG } from "../support/long-form.ts";
import { childrenWithRole, isRunning } from "../support/processes.ts";
import { serviceFolder } from "../support/service-folder.ts";
import { withUpstream } from "../support/upstream-server.ts";
import { waitFor } from "../support/wait.ts";

testsMayTake(60_000);

// In the short run, `cli/supervise.test.ts` covers a console that ends after the gateways.
test.if(LONG)("a stopping gateway answers the last query of a console that stops slowly", async () => {
	const database = await withDatabase();
	const upstream = withUpstream("vllm");
	const { environment } = serviceFolder(database, upstream.url);
	const more = { ...PERSON_ENV, ROLE: "all", WORKERS: "2", PORT: String(quietPort()), DRAIN_S: "8" };
	const server = await startServe(environment("service", more), { ready: "all processes are ready" });
	const { url } = server;
	const customer = await signedUp({ url, db: database });
	await topUp(customer, await operator({ url, db: database }));
	const { key } = (await customer.send("POST", "/api/console/keys", { name: "k" })).body;
	const [people = 0] = childrenWithRole(server.pid, "console");
	atEnd(() => isRunning(people) && process.kill(people, "SIGCONT"));

	server.kill("SIGTERM");
	const once = () => ({ headers: { connection: "close" }, signal: AbortSignal.timeout(500) });
	await waitFor(async () => (await fetch(`${url}/readyz`, once())).status === 503, "it to say that it stops");
	process.kill(people, "SIGSTOP");
	const chat = { model: "test-model", messages: [{ role: "user", content: "one two three" }] };
	const played = customer.send("POST", `/api/console/playground/chat?key=${key.id}`, chat, { connection: "close" });
	const isShut = async () => {
		const problem = await fetch(`${url}/livez`, once()).catch((error) => error.code);
		return problem === "ECONNREFUSED";
	};
	await waitFor(isShut, "the doors to be shut");
	process.kill(people, "SIGCONT");
	const { status, body } = await played;
	expect([status, body.choices?.[0].message.content ?? body]).toEqual([200, "echo: one two three"]);
	expect(await server.exited).toBe(0);
});
