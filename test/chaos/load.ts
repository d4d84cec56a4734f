import type { AppendedEntry } from "../../src/cluster/control-log.ts";
import { suspendAccount, unsuspendAccount, updateAccount } from "../../src/keys/account-admin.ts";
import type { CapPeriod } from "../../src/keys/cap-period.ts";
import { revokeKey } from "../../src/keys/key-admin.ts";
import { nanoUsd } from "../../src/money/nano-usd.ts";
import type { Random } from "../support/random.ts";
import { nowMs } from "../support/wait.ts";
import { type SentRequest, sendChat } from "./chat-client.ts";
import type { Fleet, FleetMember } from "./fleet.ts";
import { type KeyProject, startProjects } from "./projects.ts";

export interface LoadKey {
	readonly id: string;
	readonly secret: string;
	readonly account: string;
	readonly cap: number | undefined;
	readonly period: CapPeriod;
	/** Projects of the key in order; the last one is its current project. */
	readonly homes: KeyProject[];
}

export interface NewKey {
	readonly cap?: number | undefined;
	readonly period?: CapPeriod;
	readonly project?: string;
}

/**
 * A time in which no request of `subject` may be admitted, because its revocation or suspension was effective. `isCap`:
 * `subject` is a project whose cap had been lowered.
 */
export interface ClosedSpan {
	readonly subject: string;
	readonly isCap: boolean;
	readonly fromMs: number;
	untilMs: number;
	readonly tookMs: number;
}

/** Traffic of many customers, and an operator who revokes keys and suspends accounts. */
export type Load = Awaited<ReturnType<typeof startLoad>>;

export interface LoadOptions {
	users: number;
	/** Longest pause in milliseconds between a user's requests; default none. It leaves processor time to others. */
	restMsMax?: number;
	accounts: number;
	/** Additional users per instance, who send short requests one by one with keys that no act touches. */
	regulars?: number;
	/** Gives some accounts projects that change. `period`: that of all renewing caps; by default several. */
	projects?: { readonly period?: CapPeriod };
	timeZone?: string;
}

const RICH = 100_000_000_000;
/** Nano-dollars for some hundred requests, so that the credit is spent during the run. */
const POOR = 12_000_000;
const CAP = 6_000_000;

export async function startLoad(fleet: Fleet, random: Random, options: LoadOptions) {
	const sent: SentRequest[] = [];
	const keys: LoadKey[] = [];
	const accounts = new Map<string, number>();
	const closed: ClosedSpan[] = [];
	const active: LoadKey[] = [];
	let stopping = false;

	const timeZone = options.timeZone ?? "UTC";
	const addKey = async (account: string, { cap, period = "lifetime", project }: NewKey = {}) => {
		const capped = cap === undefined ? {} : { capNanoUsd: nanoUsd(cap), capPeriod: period };
		const made = await fleet.key(account, { ...capped, ...(project === undefined ? {} : { projectId: project }) });
		const homes = [{ project: project ?? null, fromMs: 0, inForceMs: 0 }];
		const key: LoadKey = { ...made, account, cap, period, homes };
		keys.push(key);
		active.push(key);
		return key;
	};
	for (let at = 0; at < options.accounts; at++) {
		const credit = at % 3 === 2 ? POOR : RICH;
		const account = await fleet.account(credit);
		accounts.set(account, credit);
		if (timeZone !== "UTC") await updateAccount(fleet.statements, account, { timeZone });
		await addKey(account);
		await addKey(account, { cap: at % 2 === 0 ? CAP : undefined });
	}
	/** Accounts that are suspended and unsuspended in turn. */
	const suspendable = [...accounts.keys()].slice(0, 2);
	const isSteady = ({ account, cap, homes }: LoadKey) =>
		cap === undefined && homes[0]?.project === null && accounts.get(account) === RICH && !suspendable.includes(account);
	const changing = options.projects && {
		accounts: [...accounts.keys()],
		isStopping: () => stopping,
		...{ addKey, insist, close, retire, period: options.projects.period },
	};
	const projects = changing && (await startProjects(fleet, changing));
	// Keys that are never revoked. Those that will be revoked are created later.
	const steady = new Set([...keys.filter(isSteady).map(({ id }) => id), ...(projects?.steady ?? [])]);

	async function user(own: Random): Promise<void> {
		while (!stopping) {
			const member = own.pick(fleet.members);
			const leaves = own.fraction();
			const stream = own.fraction() < 0.7;
			const answer = await sendChat(member, own.pick(active), {
				words: Math.floor(own.between(1, 90)),
				stream,
				maxTokens: Math.floor(own.between(5, 120)),
				...(leaves < 0.1 && stream ? { leaveAfterTokens: Math.floor(own.between(1, 30)) } : {}),
				...(leaves > 0.95 ? { leaveAfterMs: own.between(0, 60) } : {}),
			});
			sent.push(answer);
			if (answer.status !== 200) await Bun.sleep(own.between(5, 60));
			else if (options.restMsMax !== undefined) await Bun.sleep(own.between(0, options.restMsMax));
		}
	}

	/** Retries a refused request at once, so that even a brief refusal is noticed. */
	async function regular(own: Random, member: FleetMember): Promise<void> {
		const known = keys.filter(({ id }) => steady.has(id));
		while (!stopping) {
			const ask = { words: Math.floor(own.between(1, 9)), stream: false, maxTokens: Math.floor(own.between(2, 12)) };
			sent.push(await sendChat(member, own.pick(known), ask));
			await Bun.sleep(own.between(10, 50));
		}
	}

	/** Repeats `work` until it succeeds, because the database may be down. */
	async function insist<T>(work: () => Promise<T>): Promise<T> {
		for (;;) {
			try {
				return await work();
			} catch (error) {
				if (stopping) throw error;
				await Bun.sleep(50);
			}
		}
	}

	async function close(subject: string, change: () => Promise<AppendedEntry>, isCap = false): Promise<ClosedSpan> {
		const appended = await insist(change);
		const { effective, elapsedMs } = await insist(() => fleet.applied(appended));
		if (!effective) throw new Error(`a change of ${subject} was not in force everywhere in time`);
		const entry = { subject, isCap, fromMs: nowMs(), untilMs: Number.POSITIVE_INFINITY, tookMs: elapsedMs };
		closed.push(entry);
		return entry;
	}

	/** Continues to send requests with a revoked key, all of which must be refused. */
	function retire(key: LoadKey): void {
		setTimeout(() => active.splice(active.indexOf(key), 1), 1_500);
	}

	async function operator(own: Random): Promise<void> {
		while (!stopping) {
			const doomed = await insist(() => addKey(own.pick([...accounts.keys()])));
			await Bun.sleep(own.between(200, 900));
			await close(doomed.id, () => revokeKey(fleet.statements, doomed));
			retire(doomed);
			if (own.fraction() < 0.5) continue;
			const account = own.pick(suspendable);
			const suspension = await close(account, () => suspendAccount(fleet.statements, account));
			await Bun.sleep(own.between(100, 800));
			suspension.untilMs = nowMs();
			await insist(() => unsuspendAccount(fleet.statements, account));
		}
	}

	const users = Array.from({ length: options.users }, () => user(random.fork()));
	for (const member of fleet.members)
		for (let nth = 0; nth < (options.regulars ?? 0); nth++) users.push(regular(random.fork(), member));
	const untilStopped = (error: unknown) => {
		if (!stopping) throw error;
	};
	const operating = operator(random.fork()).catch(untilStopped);
	const changes = projects?.change(random.fork()).catch(untilStopped);
	return {
		sent,
		keys,
		accounts,
		closed,
		projects: projects?.projects ?? [],
		/** Time zone in which the daily caps renew. */
		timeZone,
		/** Keys that are never revoked or moved, with spare credit in every budget, of accounts never suspended. */
		steady,
		/** Ids of keys whose own or whose project's cap renews. */
		renewed() {
			const ofPeriod = new Set(projects?.projects.filter(({ period }) => period !== "lifetime").map(({ id }) => id));
			const isRenewed = ({ period, homes }: LoadKey) =>
				period !== "lifetime" || homes.some(({ project }) => project !== null && ofPeriod.has(project));
			return keys.filter(isRenewed).map(({ id }) => id);
		},
		async stop() {
			stopping = true;
			await Promise.all([...users, operating, changes]);
			for (const account of suspendable) await unsuspendAccount(fleet.statements, account);
		},
	};
}
