/** Batches that wait while batches without credit occupy the instance. Time runs a hundred times faster. */
import { expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { newId } from "../../src/base/id.ts";
import { silentLog } from "../../src/base/log.ts";
import { createBatchRunner } from "../../src/batch/batch-runner.ts";
import { createAccount } from "../../src/keys/account-admin.ts";
import { createKey } from "../../src/keys/key-admin.ts";
import { createDigest } from "../../src/keys/secret.ts";
import { untilEnd } from "../support/at-end.ts";
import { withDatabase } from "../support/database.ts";
import { createRandom } from "../support/random.ts";
import { modelOver, snapshotOf } from "../support/upstream-catalog.ts";
import { waitFor } from "../support/wait.ts";
import { chatLine } from "./batch-service.ts";
import { createCrashWorld } from "./crash-world.ts";

const db = await withDatabase();
const SPEED = 100;
const clock = {
	wallMs: () => Date.now() * SPEED,
	monotonicMs: () => performance.now() * SPEED,
	after: (delayMs: number, run: () => void) => systemClock.after(delayMs / SPEED, run),
};

test("batches without credit let other batches run and continue after a top-up", async () => {
	const maker = { statements: db.statements, digest: createDigest("x".repeat(32)), serviceName: "service" };
	const owner = { accountId: "", keyId: "" };
	const world = createCrashWorld(db, owner, createRandom(1).fraction);
	const others = async () => {
		const { id: accountId } = await createAccount(db.statements, {
			email: `${newId("mail")}@example.com`,
			vouched: true,
		});
		Object.assign(owner, { accountId, keyId: (await createKey(maker, accountId, { name: "key" })).id });
	};
	let hasCredit = false;
	const runner = createBatchRunner(
		{
			...{ books: world.books, files: world.files, clock, log: silentLog, refused: new Set() },
			...{ held: { hold: () => () => {}, orphans: () => [] }, graceMs: 100 },
			snapshot: async () => snapshotOf(modelOver([], { id: "test-model", batch: { rateCard: null } })),
			carrier: {
				answer: async ({ body }) =>
					hasCredit || !body.includes("stuck")
						? Response.json({ answer: "yes" })
						: Response.json({ error: { code: "insufficient_quota", message: "no credit" } }, { status: 402 }),
				usageOf: () => undefined,
				room: async () => 4,
			},
		},
		db,
	);
	untilEnd({ stop: runner.stop });
	const state = async (id: string) => (await db.sql`select state, paused from batch where id = ${id}`)[0];
	const ask = async (name: string) => {
		const id = await world.create([chatLine(name), chatLine(`${name} too`)]);
		runner.wake({ id, accountId: owner.accountId });
		return id;
	};
	const stuck: string[] = [];
	for (let accounts = 0; accounts < 3; accounts += 1) {
		await others();
		for (let each = 0; each < 3; each += 1) stuck.push(await ask("stuck"));
	}
	await waitFor(
		async () => (await Promise.all(stuck.map(state))).filter((batch) => batch?.paused !== null).length >= 4,
		"all places to be taken",
		20_000,
	);
	await others();
	const behind = await ask("behind");
	await waitFor(async () => (await state(behind))?.state === "completed", "the one behind them to be over", 40_000);
	for (const id of stuck)
		expect(await state(id)).toMatchObject({ state: expect.stringMatching(/validating|in_progress/) });
	hasCredit = true;
	for (const id of stuck)
		await waitFor(async () => (await state(id))?.state === "completed", "those to go on that were stuck", 40_000);
}, 120_000);
