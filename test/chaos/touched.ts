import { nowMs } from "./chat-client.ts";
import { type Fleet, LEASE_TTL_MS } from "./fleet.ts";

/** Effects of a fault on instances: the process is down or starting, or the database cannot be reached. */
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
	/** The instance became ready between `fromMs` and this moment. */
	readonly answeredAtMs: number;
	readonly isReady: boolean;
}

interface Renewal {
	readonly member: number;
	readonly atMs: number;
}

/** A span of time in which an instance may refuse requests, and the reason. */
export interface Excuse extends Span {
	readonly why: string;
}

/** Faults of a run, recorded by instance. */
export type Touched = ReturnType<typeof createTouched>;

/** As in the product: a fifth of the lease, a heartbeat each second, sooner after a failure. */
const MARGIN_MS = LEASE_TTL_MS / 5;
const HEARTBEAT_MS = 1_000;
const REPEAT_MS = 200;
/** Duration of a heartbeat on a busy machine. */
const LATE_MS = 800;
/**
 * The newest heartbeat may be this old when an instance is cut off; its gate is open for the rest of the lease, and the
 * next heartbeat must arrive by then.
 */
const PROMISED_MS = LEASE_TTL_MS - MARGIN_MS - HEARTBEAT_MS - REPEAT_MS - LATE_MS;
/** Time after which a reachable instance has renewed its lease between two faults, unless that was seen earlier. */
const RENEWED_MS = 2 * HEARTBEAT_MS + LATE_MS;
/** Time within which an instance must admit requests again, whatever it reports. */
const READY_WITHIN_MS = 10_000;
const LOOK_MS = 100;
/** Above this delay this process stalled, so the others may have stalled too. */
const STALLED_MS = 400;

export function createTouched() {
	const touches: Touch[] = [];
	const looks: Look[] = [];
	const renewals: Renewal[] = [];

	/** Moment after `fromMs` from which the instance may admit again. */
	function readyAfter(member: number, fromMs: number): number {
		const ready = looks.find((look) => look.member === member && look.isReady && look.askedAtMs >= fromMs);
		return Math.min(ready?.answeredAtMs ?? Number.POSITIVE_INFINITY, fromMs + READY_WITHIN_MS);
	}

	/**
	 * When the instance is known to have renewed its lease after `fromMs`; cut off, it stays ready until the lease ends.
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

	/** The database and this process use one machine's clock. */
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

	/** Joins spans without a renewed lease in between. */
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
		/** Records the fault around `work`, even if `work` fails. */
		async during<T>(kind: TouchKind, member: number | undefined, work: () => Promise<T>): Promise<T> {
			const fromMs = nowMs();
			try {
				return await work();
			} finally {
				touches.push({ kind, member, fromMs, untilMs: nowMs() });
			}
		},
		/** Watches `/readyz` of the instances, and stalls of the machine, until stopped. */
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
		/** Whether no fault and no consequence of a fault touched the instance. All spans must have ended. */
		isQuiet(member: number, fromMs: number, untilMs: number) {
			const own = touches.filter((touch) => touch.member === undefined || touch.member === member);
			// An instance that was cut off must reconnect, and has work waiting.
			const spans = own.map((touch) => ({ fromMs: touch.fromMs, untilMs: touch.untilMs + RENEWED_MS }));
			return ![...spans, ...touched.excuses(member)].some((span) => span.fromMs <= untilMs && fromMs <= span.untilMs);
		},
	};
	return touched;
}
