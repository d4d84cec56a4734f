import { accountBalance, keyBalance } from "../../src/ledger/balance.ts";
import { reconcile } from "../../src/ledger/reconciler.ts";
import { type SentRequest, uuidOf } from "./chat-client.ts";
import type { Arrival } from "./counting-upstream.ts";
import { type Fleet, NANO_USD_A_PROMPT_TOKEN, NANO_USD_AN_OUTPUT_TOKEN } from "./fleet.ts";
import type { ClosedSpan, Load } from "./load.ts";

/** A claim about the books, the number of facts that were checked, and the violations. */
export interface Finding {
	readonly claim: string;
	readonly checked: number;
	readonly broken: readonly string[];
}

export interface UsageRow {
	request_id: string;
	account_id: string;
	key_id: string;
	project_id: string | null;
	/** Budgets of the request other than those of account and key. */
	budgets: string[] | null;
	basis: string;
	ending: string;
	charged: number;
	off: number;
	reserved: number;
	admitted_ms: number;
	duration_ms: number;
}

/** The part of the load that is compared with the books. */
type Judged = Pick<Load, "sent" | "keys" | "accounts" | "closed">;

/** Output tokens that the gateway may deliver before its journal records them. */
const QUANTUM_TOKENS = 64;

export const costOf = (prompt: number, completion: number) =>
	prompt * NANO_USD_A_PROMPT_TOKEN + completion * NANO_USD_AN_OUTPUT_TOKEN;

/**
 * Compares four independent counts: the upstream's, the clients', the ledger's rows and the balances. Call it after all
 * instances have stopped.
 */
export async function judgeBooks(fleet: Fleet, load: Judged, arrivals: readonly Arrival[]): Promise<Finding[]> {
	const rows = await usageRows(fleet);
	const byId = new Map(rows.map((row) => [row.request_id, row]));
	const served = new Map<string, Arrival[]>();
	for (const arrival of arrivals) {
		const uuid = uuidOf(arrival.requestId) ?? "none";
		served.set(uuid, [...(served.get(uuid) ?? []), arrival]);
	}
	return [
		...ofRequests(load.sent, byId, served),
		...ofRows(rows, served),
		ofClosed(rows, load),
		...(await ofBudgets(fleet, load, rows)),
		...(await ofBooks(fleet)),
	];
}

export async function usageRows(fleet: Fleet): Promise<UsageRow[]> {
	const rows = await fleet.sql<(Record<keyof UsageRow, string> & Pick<UsageRow, "budgets" | "project_id">)[]>`
		select u.request_id, u.account_id, u.key_id, u.project_id, u.budgets, u.duration_ms, u.basis, u.ending, u.charged_nano_usd as charged, u.written_off_nano_usd as off,
			u.reserved_nano_usd as reserved,
			extract(epoch from u.admitted_at) * 1000 as admitted_ms
		from usage_event u`;
	return rows.map((row) => ({
		...row,
		charged: Number(row.charged),
		off: Number(row.off),
		reserved: Number(row.reserved),
		admitted_ms: Number(row.admitted_ms),
		duration_ms: Number(row.duration_ms),
	}));
}

export function finding<T>(claim: string, facts: readonly T[], problem: (fact: T) => string | undefined): Finding {
	const broken = facts.map(problem).filter((text) => text !== undefined);
	return { claim, checked: facts.length, broken };
}

function ofRequests(
	sent: readonly SentRequest[],
	rows: ReadonlyMap<string, UsageRow>,
	served: ReadonlyMap<string, Arrival[]>,
): Finding[] {
	const whole = sent.filter((one) => one.complete);
	const touched = sent.filter((one) => one.tokens > 0);
	return [
		finding("a complete answer is charged to the nano-dollar what the upstream counted", whole, (one) => {
			const row = rows.get(one.uuid ?? "");
			// A request that failed before its first token is sent again, so the last arrival counts.
			const arrival = served.get(one.uuid ?? "")?.at(-1);
			if (!row || !arrival) return `${one.uuid}: row ${!!row}, arrival ${!!arrival}`;
			const cost = costOf(arrival.prompt, arrival.sent);
			const right = row.charged === cost && row.off === 0 && row.basis === "exact";
			return right ? undefined : `${one.uuid}: cost ${cost}, row ${JSON.stringify(row)}`;
		}),
		finding("the usage that a client was told is what it was charged", whole, (one) => {
			const charged = rows.get(one.uuid ?? "")?.charged ?? -1;
			return one.usage && Math.round(one.usage.cost * 1e9) === charged ? undefined : `${one.uuid}: ${charged}`;
		}),
		finding("every request that gave its client a token has its usage record", touched, (one) =>
			rows.has(one.uuid ?? "") ? undefined : `${one.uuid} (${one.tokens} tokens, ${one.code ?? "no code"})`,
		),
		finding(
			"what reached a client was charged or written off; a crash gives away one quantum at most",
			touched,
			(one) => {
				const row = rows.get(one.uuid ?? "");
				const prompt = served.get(one.uuid ?? "")?.[0]?.prompt ?? 0;
				// Tokens that the journal allowed but that may not have been delivered are not charged after a crash.
				const least = costOf(prompt, one.tokens) - (row?.basis === "recovered" ? costOf(0, QUANTUM_TOKENS) : 0);
				return row && row.charged + row.off >= least ? undefined : `${one.uuid}: ${least} > ${JSON.stringify(row)}`;
			},
		),
		finding(
			"a refusal costs nothing",
			sent.filter((one) => one.status >= 400),
			(one) => {
				const row = rows.get(one.uuid ?? "");
				return row === undefined || row.charged === 0 ? undefined : `${one.uuid}: ${JSON.stringify(row)}`;
			},
		),
	];
}

function ofRows(rows: readonly UsageRow[], served: ReadonlyMap<string, Arrival[]>): Finding[] {
	const ids = new Set(rows.map((row) => row.request_id));
	const generated = (row: UsageRow) =>
		Math.max(0, ...(served.get(row.request_id) ?? []).map((arrival) => costOf(arrival.prompt, arrival.sent)));
	return [
		finding("every request that reached the upstream has its usage record", [...served.keys()], (uuid) =>
			ids.has(uuid) ? undefined : uuid,
		),
		finding(
			"an interrupted request is charged no more than the upstream generated",
			rows.filter((row) => row.basis !== "recovered"),
			(row) =>
				row.charged <= generated(row) ? undefined : `${row.charged} > ${generated(row)} ${JSON.stringify(row)}`,
		),
		finding(
			"a recovered request pays for nothing that the upstream did not generate",
			rows.filter((row) => row.basis === "recovered"),
			(row) => {
				const most = generated(row);
				return row.charged <= most ? undefined : `${most} generated, ${JSON.stringify(row)}`;
			},
		),
		finding("nothing was written off", rows, (row) => (row.off === 0 ? undefined : JSON.stringify(row))),
	];
}

function ofClosed(rows: readonly UsageRow[], load: Judged): Finding {
	const acts = load.closed.filter(({ isCap }) => !isCap);
	return finding("nothing was admitted after a revocation, a suspension or an archiving had returned", acts, (one) => {
		const [late] = lateRows(rows, one);
		return late
			? `${one.subject}: ${(late.admitted_ms - one.fromMs).toFixed(1)} ms later, ${late.request_id}`
			: undefined;
	});
}

/** Requests that were admitted after a revocation or limit was effective, with a tolerance of a millisecond. */
export function lateRows(rows: readonly UsageRow[], { subject, fromMs, untilMs }: ClosedSpan): UsageRow[] {
	return rows.filter(
		(row) =>
			[row.key_id, row.account_id, row.project_id].includes(subject) &&
			row.admitted_ms > fromMs + 1 &&
			row.admitted_ms < untilMs - 1,
	);
}

async function ofBudgets(fleet: Fleet, load: Judged, rows: readonly UsageRow[]): Promise<Finding[]> {
	const spent = new Map<string, number>();
	for (const row of rows)
		for (const id of [row.account_id, row.key_id]) spent.set(id, (spent.get(id) ?? 0) + row.charged);
	const balances = new Map<string, Awaited<ReturnType<typeof accountBalance>>>();
	for (const account of load.accounts.keys()) balances.set(account, await accountBalance(fleet.statements, account));
	const held = new Map<string, number>();
	for (const { id } of load.keys) held.set(id, (await keyBalance(fleet.statements, id)).held);
	return [
		finding("no account has spent more than its credit", [...load.accounts], ([account, credit]) => {
			const total = spent.get(account) ?? 0;
			return total <= credit ? undefined : `${account}: ${total} of ${credit}`;
		}),
		finding(
			"no key has spent more than its cap",
			load.keys.filter((key) => key.cap !== undefined && key.period === "lifetime"),
			(key) =>
				(spent.get(key.id) ?? 0) <= (key.cap ?? 0) ? undefined : `${key.id}: ${spent.get(key.id)} of ${key.cap}`,
		),
		finding(
			"at rest nothing is held, and spent and available make up the credit",
			[...load.accounts],
			([account, credit]) => {
				const balance = balances.get(account);
				const right =
					balance?.held === 0 &&
					balance.spent === (spent.get(account) ?? 0) &&
					balance.spent + balance.available === credit;
				return right ? undefined : `${account}: ${JSON.stringify(balance)} of ${credit}`;
			},
		),
		finding("at rest nothing of a key's cap is held", [...held], ([id, amount]) => (amount === 0 ? undefined : id)),
	];
}

async function ofBooks(fleet: Fleet): Promise<Finding[]> {
	const { checks } = await reconcile(fleet.statements);
	const open = await fleet.sql`select budget_id, instance_id, epoch from lease where state = 'open'`;
	const running = await fleet.sql`
		select id, epoch, state from instance_now where state in ('live', 'dead') or (state = 'joining' and lease_until > clock_timestamp())`;
	const reservations = await fleet.sql`select request_id from reservation`;
	const left = fleet.members.flatMap((member) => member.journals());
	const none = (claim: string, list: readonly unknown[]): Finding => ({
		claim,
		checked: 1,
		broken: list.map((one) => JSON.stringify(one)),
	});
	return [
		finding("the books reconcile", checks, (check) => (check.ok ? undefined : `${check.name}: ${check.detail}`)),
		none("all leases are closed", [...open]),
		none("no instance is live or waits for its recovery", [...running]),
		none("no request is shown as running", [...reservations]),
		none("no journal is left", left),
	];
}
