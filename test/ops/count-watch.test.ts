import { expect, test } from "bun:test";
import { createLog } from "../../src/base/log.ts";
import { nextTurn } from "../../src/base/time-slice.ts";
import { startWatch } from "../../src/base/watch.ts";
import { createTestDatabase } from "../support/database.ts";
import { chatModel, withService } from "../support/service.ts";
import { createManualClock } from "../support/upstream-clock.ts";
import { waitFor } from "../support/wait.ts";

const log = createLog({ level: "error", write: () => {} });

test("a gateway warns of a payment that the books lack and stays ready", async () => {
	const database = await createTestDatabase();
	await database.sql`insert into stripe_finding (id, kind, reason) values ('paid:pi_1', 'uncredited', 'refused: another amount')`;
	await database.sql`
		insert into refused_settlement (instance_id, epoch, requests, charged_nano_usd, at)
		values ('a', 1, 2, 1, now()), ('b', 1, 3, 1, now() - interval '23 hours'), ('c', 1, 7, 1, now() - interval '25 hours')`;
	const service = await withService({ models: chatModel({ url: "http://127.0.0.1:9" }), database });
	const warnings = async () => (await (await service.get("/readyz")).json()).warnings as string[];
	await waitFor(async () => (await warnings()).some((text) => text.includes("card payment")), "the warning");
	for (const path of ["/readyz", "/health"]) expect((await service.get(path)).status).toBe(200);
	// The metric counts the last day's late settlements of all instances.
	expect(await (await service.get("/metrics")).text()).toContain("\ntollgate_payment_findings_open 1\n");
	await waitFor(
		async () => (await (await service.get("/metrics")).text()).includes("\ntollgate_settlements_refused 5\n"),
		"the refused settlements",
	);
});

test("the count watch runs every minute and keeps its state without Postgres", async () => {
	const clock = createManualClock();
	let answer = () => Promise.resolve(2);
	const watch = startWatch({ look: () => answer(), clock, log }, { what: "a", firstLookMs: 1_000 });
	const pass = async (ms: number) => {
		clock.advance(ms);
		await nextTurn();
	};
	expect(watch.last()).toBeUndefined();
	await pass(1_000);
	expect(watch.last()).toBe(2);
	answer = () => Promise.reject(new Error("away"));
	await pass(60_000);
	expect(watch.last()).toBe(2);
	answer = () => Promise.resolve(0);
	await pass(60_000);
	expect(watch.last()).toBe(0);
	watch.stop();
	answer = () => Promise.resolve(7);
	await pass(60_000);
	expect(watch.last()).toBe(0);
});
