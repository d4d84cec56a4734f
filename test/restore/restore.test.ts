/**
 * Tests a restore after the database's machine and disk were lost. The older state comes from a base backup, taken
 * under load, and the log up to some time. `src/ops/restore.md` describes the procedure.
 */
import { describe, expect, test } from "bun:test";
import { cpSync, rmSync } from "node:fs";
import { join } from "node:path";
import { revokeKey } from "../../src/keys/key-admin.ts";
import { accountBalance } from "../../src/ledger/balance.ts";
import { reconcile } from "../../src/ledger/reconciler.ts";
import { type ChatRequest, type SentRequest, sendChat, uuidOf } from "../chaos/chat-client.ts";
import { areJournalsReplayed, type FleetMember, withFleet } from "../chaos/fleet.ts";
import { withOwnPostgres } from "../chaos/own-postgres.ts";
import { costOf } from "../chaos/verdict.ts";
import { runHere } from "../cli/run-here.ts";
import { atEnd, temporaryFolder } from "../support/at-end.ts";
import { LONG } from "../support/long-form.ts";
import { waitFor } from "../support/wait.ts";
import { createBackup } from "./base-backup.ts";

const RICH = 100_000_000_000;
/**
 * Nano-dollars for about forty requests, in the short run a dozen. They are spent before the loss, and the restore must
 * not return them.
 */
const POOR = LONG ? 1_400_000 : 450_000;
const REQUESTS = LONG ? 40 : 9;
const USERS = LONG ? 4 : 3;
const SHORT: ChatRequest = { words: 4, stream: true, maxTokens: 20 };
const STREAM: ChatRequest = { words: 400, stream: true, maxTokens: 500 };
/** Cost of the 64 tokens that the gateway may deliver before its journal records them. */
const QUANTUM = costOf(0, 64);

const backup = createBackup();
atEnd(() => backup.remove());
const postgres = await withOwnPostgres({ ...backup.settings, fsync: "off" });
const { fleet, upstream } = await withFleet({ gapMsMax: 2, databaseUrl: postgres.url, instances: 2 });
const [first, second] = fleet.members as [FleetMember, FleetMember];
/** Instances that are started again after the journals were lost. */
const AFTERWARDS = LONG ? fleet.members : [first];
const journals = temporaryFolder();

/** Folders of an instance's data that must be kept for a database that loses commits. */
const KEPT = ["journal", "control"];

type Key = Awaited<ReturnType<typeof fleet.key>>;
const send = (key: Key, what: ChatRequest, member: FleetMember) => sendChat(member, key, what);
const chargeOf = (sent: readonly SentRequest[]) =>
	sent.reduce((sum, { usage }) => sum + Math.round((usage?.cost ?? 0) * 1e9), 0);

/** Sends requests with all keys to the instances until `enough` were answered completely and `until` has resolved. */
async function serve(
	keys: readonly Key[],
	enough: number,
	{ at = fleet.members, until = Promise.resolve() as Promise<unknown> } = {},
) {
	const sent: SentRequest[] = [];
	let done = false;
	const working = until.finally(() => {
		done = true;
	});
	const wholes = () => sent.filter(({ complete }) => complete).length;
	const users = Array.from({ length: USERS }, async (_, user) => {
		for (let turn = user; !done || wholes() < enough; turn++) {
			const answer = await send(keys[turn % keys.length] as Key, SHORT, at[turn % at.length] as FleetMember);
			sent.push(answer);
			// Slows the requests down, because some dozens during the backup, which takes a second, are enough.
			await Bun.sleep(20);
		}
	});
	await Promise.all([working, ...users]);
	return sent;
}

const whole = (sent: readonly SentRequest[]) => sent.filter(({ complete }) => complete);
async function rowsOf(sent: readonly SentRequest[]): Promise<Map<string, { charged: number; off: number }>> {
	const ids = sent.flatMap(({ uuid }) => (uuid === undefined ? [] : [uuid]));
	const rows = await fleet.sql`
		select request_id, charged_nano_usd as charged, written_off_nano_usd as off from usage_event where request_id = any (${ids}::uuid[])`;
	return new Map(rows.map((row) => [row.request_id, { charged: Number(row.charged), off: Number(row.off) }]));
}
const missing = async (sent: readonly SentRequest[]) => {
	const rows = await rowsOf(sent);
	return sent.filter(({ uuid }) => !rows.has(uuid ?? ""));
};
const broken = async () => (await reconcile(fleet.statements)).checks.filter(({ ok }) => !ok);

/** Kills the database with its disk, and both instances. Keeps a copy of the journals as they were then. */
async function loseMachine(): Promise<void> {
	await Promise.all(fleet.members.map((member) => member.crash()));
	await postgres.crash();
	for (const { index, dataDir } of fleet.members)
		for (const name of KEPT) cpSync(join(dataDir, name), join(journals, String(index), name), { recursive: true });
}

function placeJournals(kept: boolean): void {
	for (const { index, dataDir } of fleet.members) {
		for (const name of [...KEPT, "journal-kept"]) rmSync(join(dataDir, name), { recursive: true, force: true });
		if (kept) cpSync(join(journals, String(index)), dataDir, { recursive: true });
	}
}

// Before the loss: requests, a backup under load, requests that only the log has, the end of the log, more requests.
const rich = await fleet.account(RICH);
const poor = await fleet.account(POOR);
const keys = [await fleet.key(rich), await fleet.key(rich), await fleet.key(poor)];
const revokedInTime = await fleet.key(rich);
const revokedTooLate = await fleet.key(rich);
const inBackup = await serve(keys, REQUESTS, { until: backup.takeBase(postgres) });
const inLog = await serve(keys, REQUESTS);
await fleet.applied(await revokeKey(fleet.statements, revokedInTime));
const settled = async () => (await missing(whole([...inBackup, ...inLog]))).length === 0;
await waitFor(settled, "all usage to be in Postgres");
await backup.keepLog(postgres);

// Starts an epoch that the restored database will lack, so that it assigns the epoch's number again.
await second.stop("SIGINT");
await second.start();
const stranger = await fleet.account(RICH);
const strangersKey = await fleet.key(stranger);
const newKey = await fleet.key(rich);
const afterwards = await serve([...keys, strangersKey, newKey], REQUESTS);
await fleet.applied(await revokeKey(fleet.statements, revokedTooLate));
await waitFor(async () => (await missing(whole(afterwards))).length === 0, "all usage to be in Postgres");
const seen = (await upstream.report()).length;
const cutting = fleet.members.flatMap((member) => [1, 2].map(() => send(keys[0] as Key, STREAM, member)));
await waitFor(
	async () => (await upstream.report()).slice(seen).filter(({ sent }) => sent > 80).length === cutting.length,
	"streams to run",
	20_000,
);
await loseMachine();
const cut = await Promise.all(cutting);
const acknowledged = whole(afterwards);
/** Answered requests of a customer and a key that were created after the end of the log. */
const ofUnknown = acknowledged.filter(({ key }) => key === strangersKey.id || key === newKey.id);

// Only in the long run: the short one keeps the journals. `chaos/journal-modes.test.ts` attests lost ones.
describe.if(LONG)("a restore with lost journals", () => {
	test("loses exactly the requests acknowledged after the last restored transaction", async () => {
		placeJournals(false);
		await backup.restoreTo(postgres);
		expect(await missing(whole([...inBackup, ...inLog]))).toEqual([]);
		expect((await missing(acknowledged)).length).toBe(acknowledged.length);
		const known = await fleet.sql`select coalesce(sum(charged_nano_usd), 0)::bigint as sum from usage_event`;
		expect(Number(known[0]?.sum)).toBe(chargeOf(whole([...inBackup, ...inLog])));
	}, 60_000);

	test("frees the lost journals' credit after the operator's attestation", async () => {
		const [leased] = await fleet.sql`
			select sum(granted_nano_usd - returned_nano_usd - settled_nano_usd)::bigint as held from lease where budget_id = ${rich} and state = 'open'`;
		const held = Number(leased?.held);
		expect(held).toBeGreaterThan(0);
		await Promise.all(["i0", "i1"].map(recover));
		const charged = chargeOf(whole([...inBackup, ...inLog]).filter(({ key }) => key !== keys[2]?.id));
		expect(await accountBalance(fleet.statements, rich)).toMatchObject({
			spent: charged,
			available: RICH - charged,
			held: 0,
		});
		expect(await broken()).toEqual([]);
	}, 60_000);

	test("overspends no account and keeps revocations from before the end of the log", async () => {
		await Promise.all(AFTERWARDS.map((member) => member.start()));
		const last = AFTERWARDS.at(-1) as FleetMember;
		const sent = await serve(keys, REQUESTS, { at: AFTERWARDS });
		expect((await send(revokedInTime, SHORT, first)).code).toBe("api_key_revoked");
		expect((await send(revokedTooLate, SHORT, first)).status).toBe(200);
		await fleet.applied(await revokeKey(fleet.statements, revokedTooLate));
		expect((await send(revokedTooLate, SHORT, last)).code).toBe("api_key_revoked");
		for (const key of [strangersKey, newKey]) expect((await send(key, SHORT, last)).code).toBe("invalid_api_key");
		await spendDry(AFTERWARDS);
		await waitFor(async () => (await missing(whole(sent))).length === 0, "all usage to be in Postgres");
		expect(await Promise.all(AFTERWARDS.map((member) => member.stop("SIGINT")))).toEqual(AFTERWARDS.map(() => 0));
		await expectWithinCredit();
	}, 60_000);
});

describe("a restore with kept journals", () => {
	test("loses no acknowledged request, and at most 64 tokens of each running one", async () => {
		await postgres.crash();
		placeJournals(true);
		await backup.restoreTo(postgres);
		// After the restore, the old epochs' leases still hold credit for settlements in their journals: `recover` frees it.
		await Promise.all(["i0", "i1"].map(recover));
		await Promise.all(fleet.members.map((member) => member.start()));
		await waitFor(() => areJournalsReplayed(fleet.members), "the journals to be handed in", 30_000);
		expect(await missing([...whole([...inBackup, ...inLog]), ...acknowledged])).toEqual([]);
		const rows = await rowsOf([...acknowledged, ...cut]);
		const off = [...rows.values()].reduce((sum, row) => sum + row.off, 0);
		const charged = acknowledged.reduce((sum, { uuid }) => sum + (rows.get(uuid ?? "")?.charged ?? 0), 0);
		// A customer that the restored books lack cannot be charged, so the usage is recorded and written off.
		expect([charged, off]).toEqual([chargeOf(acknowledged) - chargeOf(ofUnknown), chargeOf(ofUnknown)]);
		expect(off).toBeGreaterThan(0);
		for (const one of cut) {
			const arrival = (await upstream.report()).find(({ requestId }) => uuidOf(requestId) === one.uuid);
			const given = costOf(arrival?.prompt ?? 0, one.tokens) - (rows.get(one.uuid ?? "")?.charged ?? 0);
			expect(given).toBeLessThanOrEqual(QUANTUM);
		}
		expect(await broken()).toEqual([]);
	}, 60_000);

	test("overspends no account", async () => {
		await spendDry(fleet.members);
		expect(await Promise.all(fleet.members.map((member) => member.stop("SIGINT")))).toEqual([0, 0]);
		await expectWithinCredit();
	}, 60_000);
});

/** Attests that the instance is lost, as an operator does who knows that none of its processes runs. */
async function recover(id: string): Promise<void> {
	const { exitCode, stderr } = await runHere(["instance", "recover", id, "--journal-lost", "--json"], fleet.env);
	expect([exitCode, stderr]).toEqual([0, ""]);
}

/** Sends the poor customer's requests to each instance until the credit is spent. */
async function spendDry(members: readonly FleetMember[]): Promise<void> {
	for (const member of members)
		await waitFor(
			async () => (await send(keys[2] as Key, SHORT, member)).status === 402,
			"the credit to run dry",
			30_000,
		);
}

async function expectWithinCredit(): Promise<void> {
	for (const [account, credit] of [
		[rich, RICH],
		[poor, POOR],
	] as const) {
		const [row] = await fleet.sql`
			select coalesce(sum(charged_nano_usd), 0)::bigint as charged from usage_event where account_id = ${account}`;
		expect(Number(row?.charged)).toBeLessThanOrEqual(credit);
		const { spent, available, held } = await accountBalance(fleet.statements, account);
		expect([spent, spent + available, held]).toEqual([Number(row?.charged), credit, 0]);
	}
	expect(await broken()).toEqual([]);
}
