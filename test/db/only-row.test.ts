import { expect, test } from "bun:test";
import { createBatchBooks } from "../../src/batch/batch-books.ts";
import { confirmTopUp } from "../../src/billing/top-ups.ts";
import { createPgHeartbeatStore } from "../../src/cluster/heartbeat.ts";
import { createPgFenceStore } from "../../src/cluster/pg-fence-store.ts";
import { countWithin } from "../../src/console/rate-counter.ts";
import { AnswerLost, isDatabaseDown, onlyRow } from "../../src/db/outage.ts";
import type { Statements } from "../../src/db/statements.ts";
import { updateAccount } from "../../src/keys/account-admin.ts";
import { createPgLedgerStore } from "../../src/ledger/pg-store.ts";
import { appendControl } from "../cluster/fixture.ts";

const statements: Statements = Object.assign(async () => [], { end: async () => {} });

const ledger = createPgLedgerStore({ statements }, "one", 1);
const heartbeats = createPgHeartbeatStore(statements);
const fences = createPgFenceStore(statements);

const ACTS: Record<string, () => Promise<unknown>> = {
	"settlements are not booked": () => ledger.flush([], "[]"),
	"leases are not closed": () => ledger.close(),
	"nothing is asked back": () => ledger.recall([]),
	"nobody joins": () => heartbeats.join("one", 5_000),
	"nobody knows where the log ends": () => heartbeats.position(),
	"nobody goes live": () => heartbeats.goLive("one", 1, 0, 5_000),
	"nothing is known of the server": () => fences.server(),
	"nothing is in the control log": () => appendControl(statements, "key", "key_1", {}),
	"no account is suspended": () => updateAccount(statements, "acc_1", { state: "suspended" }),
	"no top-up is confirmed": () => confirmTopUp(statements, "top_1", "somebody"),
	"no attempt is counted": () => countWithin(statements, "sign-in", "somebody", 1_000),
	"no line's outcome is written down": () => createBatchBooks({ statements }).outcomes("batch_1", 1, []),
};

test("a database call whose answer lacks its row is treated as a lost answer", async () => {
	for (const [what, act] of Object.entries(ACTS)) {
		const error = await act().then(
			() => undefined,
			(thrown: unknown) => thrown,
		);
		expect([what, isDatabaseDown(error)]).toEqual([what, true]);
	}
});

test("a database answer with a second row or an empty row is an error", () => {
	expect(onlyRow([{ one: 1 }])).toEqual({ one: 1 });
	for (const rows of [[], [{}, {}], [undefined, {}], [undefined]]) expect(() => onlyRow(rows)).toThrow(AnswerLost);
});
