import { expect, spyOn, test } from "bun:test";
import postgres from "postgres";
import { silentLog } from "../../src/base/log.ts";
import { consoleErrorResponse } from "../../src/console/console-error.ts";
import { DatabaseTimeout } from "../../src/db/outage.ts";
import { testPostgres } from "../support/postgres.ts";
import { withChat } from "../support/service.ts";
import { waitFor } from "../support/wait.ts";
import { type Answer, newPerson, PASSWORD, PERSON_ENV, signedUp } from "./person.ts";

const { service } = await withChat({ dialect: "vllm", env: PERSON_ENV });

function expectAway({ status, headers, body }: Answer): void {
	expect({ status, code: body?.error?.code }).toEqual({ status: 503, code: "service_unavailable" });
	expect(headers.get("retry-after")).not.toBeNull();
	expect(headers.get("x-request-id")).not.toBeNull();
}

test("pages and sign-in answer 503 without the database, and work again afterwards", async () => {
	const person = await signedUp(service);
	const stranger = newPerson(service);
	const admin = postgres((await testPostgres()).adminUrl, { max: 1, onnotice: () => {} });
	const name = new URL(service.db.url).pathname.slice(1);
	try {
		await admin.unsafe(`alter database ${name} with allow_connections false`);
		await admin`select pg_terminate_backend(pid) from pg_stat_activity where datname = ${name}`;
		expectAway(await person.get("/api/console/me"));
		expectAway(await person.get("/api/console/overview"));
		expectAway(await person.get("/api/auth/get-session"));
		expectAway(await stranger.send("POST", "/api/auth/sign-in/email", { email: person.email, password: PASSWORD }));
	} finally {
		await admin.unsafe(`alter database ${name} with allow_connections true`);
		await admin.end();
	}
	await waitFor(async () => (await person.get("/api/console/me")).status === 200, "the console to work again");
	// An invalid request gets its own error again instead of a 503.
	expect((await stranger.send("POST", "/api/auth/sign-in/email", { email: person.email, password: "no" })).status).toBe(
		401,
	);
});

test("a database outage while a session is read answers 503 without details", async () => {
	const person = await signedUp(service);
	const written = spyOn(console, "error").mockImplementation(() => {});
	const holder = await service.db.sql.reserve();
	try {
		await holder`begin`;
		await holder`lock table console_user in access exclusive mode`;
		const asked = person.get("/api/auth/get-session");
		await waitFor(
			async () =>
				(
					await holder`select pg_terminate_backend(pid) from pg_locks where relation = 'console_user'::regclass and not granted`
				).length > 0,
			"who asks for the person",
		);
		expectAway(await asked);
	} finally {
		await holder`rollback`;
		holder.release();
		written.mockRestore();
	}
	expect(written.mock.calls).toEqual([]);
	expect((await person.get("/api/console/me")).status).toBe(200);
});

const OPTIONS = { log: silentLog, language: "en" } as const;

test("a database timeout wrapped in another error answers 503", async () => {
	const error = new Error("Failed query", { cause: new DatabaseTimeout("late") });
	const response = consoleErrorResponse(error, "req_1", OPTIONS);
	expect([response.status, (await response.json()).error.code]).toEqual([503, "service_unavailable"]);
	expect(consoleErrorResponse(new Error("a bug"), "req_1", OPTIONS).status).toBe(500);
});
