import { nowMs } from "../support/wait.ts";
import { type Fleet, LEASE_TTL_MS } from "./fleet.ts";

/** Effect on an instance. `away`: its process is down or starting; `cut off`: it cannot reach the database. */
export type TouchKind = "away" | "cut off";

export interface Span {
	readonly fromMs: number;
	readonly untilMs: number;
}

export interface Touch extends Span {
	readonly kind: TouchKind;
	readonly member: number | undefined;
}

interface Look {
	readonly member: number;
	readonly askedAtMs: number;
	/** The instance became ready between `fromMs` and this time. */
	readonly answeredAtMs: number;
	readonly isReady: boolean;
}

interface Renewal {
	readonly member: number;
	readonly atMs: number;
}

/** A span of time in which an instance may refuse requests, with the reason. */
export interface Excuse extends Span {
	readonly why: string;
}

/** Faults of a run, by instance. */
export type Touched = ReturnType<typeof createTouched>;

/** As in the product: the gate closes a fifth of a lease early; a heartbeat each second, sooner after a failure. */
const MARGIN_MS = LEASE_TTL_MS / 5;
const HEARTBEAT_MS = 1_000;
const REPEAT_MS = 200;
/** Longest expected time of a heartbeat in milliseconds on a busy machine. */
const LATE_MS = 800;
/**
 * Milliseconds that an instance certainly serves after it was cut off. Its newest heartbeat may be as old as the
 * subtracted times, and the gate stays open for the rest of the lease.
 */
const PROMISED_MS = LEASE_TTL_MS - MARGIN_MS - HEARTBEAT_MS - REPEAT_MS - LATE_MS;
/** Milliseconds within which a reachable instance renews its lease, unless the renewal was observed earlier. */
const RENEWED_MS = 2 * HEARTBEAT_MS + LATE_MS;
/** Milliseconds within which an instance must admit requests again, whatever it reports. */
const READY_WITHIN_MS = 10_000;
const LOOK_MS = 100;
/** Delay in milliseconds above which this process has stalled, so that the others may have stalled too. */
const STALLED_MS = 400;

export function createTouched() {
	const touches: Touch[] = [];
	const looks: Look[] = [];
	const renewals: Renewal[] = [];

	/** Time after `fromMs` from which the instance may be ready again. */
	function readyAfter(member: number, fromMs: number): number {
		const ready = looks.find((look) => look.member === member && look.isReady && look.askedAtMs >= fromMs);
		return Math.min(ready?.answeredAtMs ?? Number.POSITIVE_INFINITY, fromMs + READY_WITHIN_MS);
	}

	/**
	 * Time after `fromMs` at which the instance has renewed its lease for certain. Cut off, it stays ready until the
	 * lease ends.
	 */
	function renewedAfter(member: number, fromMs: number): number {
		const renewal = renewals.find(({ member: whose, atMs }) => whose === member && atMs >= fromMs);
		return Math.min((renewal?.atMs ?? Number.POSITIVE_INFINITY) + LATE_MS, fromMs + READY_WITHIN_MS);
	}

	async function look(member: number, url: string): Promise<void> {
		const askedAtMs = nowMs();
		const signal = AbortSignal.timeout(1_000);
		const isReady = await fetch(`${url}/readyz`, { signal }).then(
			async (answer) => {
				await answer.arrayBuffer();
				return answer.ok;
			},
			() => false,
		);
		looks.push({ member, askedAtMs, answeredAtMs: nowMs(), isReady });
	}

	/** Compares times directly, because the database and this process use the same machine's clock. */
	async function lookAtLeases({ members, statements }: Fleet): Promise<void> {
		const rows = await statements<{ id: string; at: number }>`
			select id, extract(epoch from max(lease_until)) * 1000 as at from instance_now where state = 'live' group by id`.catch(
			() => [],
		);
		for (const { id, at } of rows) {
			const member = members.find(({ index }) => id === `i${index}`);
			if (member) renewals.push({ member: member.index, atMs: Number(at) - LEASE_TTL_MS });
		}
	}

	/** Joins spans between which the instance did not renew its lease. */
	function joined(member: number, spans: readonly Span[]): Span[] {
		const whole: Span[] = [];
		for (const { fromMs, untilMs } of [...spans].sort((a, b) => a.fromMs - b.fromMs)) {
			const last = whole.at(-1);
			const isRenewed = (since: number) =>
				fromMs - since >= RENEWED_MS ||
				renewals.some(({ member: whose, atMs }) => whose === member && atMs > since && atMs + LATE_MS < fromMs);
			if (last && !isRenewed(last.untilMs))
				whole[whole.length - 1] = { fromMs: last.fromMs, untilMs: Math.max(last.untilMs, untilMs) };
			else whole.push({ fromMs, untilMs });
		}
		return whole;
	}

	const touched = {
		/** Records the fault during `work`, even if `work` fails. */
		async during<T>(kind: TouchKind, member: number | undefined, work: () => Promise<T>): Promise<T> {
			const fromMs = nowMs();
			try {
				return await work();
			} finally {
				touches.push({ kind, member, fromMs, untilMs: nowMs() });
			}
		},
		/** Watches `/readyz` of the instances, and stalls of this process, until stopped. */
		watch(fleet: Fleet) {
			let stopping = false;
			const repeated = async (work: () => Promise<void>) => {
				for (; !stopping; await Bun.sleep(LOOK_MS)) await work();
			};
			const watching = [
				...fleet.members.map(({ index, url }) => repeated(() => look(index, url))),
				repeated(() => lookAtLeases(fleet)),
			];
			let lastMs = nowMs();
			const timer = setInterval(() => {
				const atMs = nowMs();
				if (atMs - lastMs > STALLED_MS)
					touches.push({ kind: "cut off", member: undefined, fromMs: lastMs, untilMs: atMs });
				lastMs = atMs;
			}, LOOK_MS);
			return {
				async stop() {
					stopping = true;
					clearInterval(timer);
					await Promise.all(watching);
				},
			};
		},
		/** Spans in which this instance may refuse a known customer. Call it after all spans have ended. */
		excuses(member: number): Excuse[] {
			const own = touches.filter((touch) => touch.member === undefined || touch.member === member);
			const away = own.filter(({ kind }) => kind === "away");
			const cutOff = joined(
				member,
				own.filter(({ kind }) => kind === "cut off"),
			);
			return [
				...away.map(
					({ fromMs, untilMs }): Excuse => ({ why: "was away", fromMs, untilMs: readyAfter(member, untilMs) }),
				),
				...cutOff
					.filter(({ fromMs, untilMs }) => untilMs - fromMs > PROMISED_MS)
					.map(
						({ fromMs, untilMs }): Excuse => ({
							why: `was cut off for more than ${PROMISED_MS} ms`,
							fromMs: fromMs + PROMISED_MS,
							untilMs: Math.max(readyAfter(member, untilMs), renewedAfter(member, untilMs)),
						}),
					),
			];
		},
		/** True if neither a fault nor the consequence of one touched the instance. Call it after all spans have ended. */
		isQuiet(member: number, fromMs: number, untilMs: number) {
			const own = touches.filter((touch) => touch.member === undefined || touch.member === member);
			// After a cut-off, an instance must first reconnect and do the work that has accumulated.
			const spans = own.map((touch) => ({ fromMs: touch.fromMs, untilMs: touch.untilMs + RENEWED_MS }));
			return ![...spans, ...touched.excuses(member)].some((span) => span.fromMs <= untilMs && fromMs <= span.untilMs);
		},
	};
	return touched;
}
