import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Statements } from "../db/statements.ts";

/** What a gateway knows of money that Stripe and the books do not agree about: for readiness and metrics. */
export interface PaymentWatch {
	/** Open findings; undefined before the first look. */
	open(): number | undefined;
	stop(): void;
}

/** What readiness says while there is one. */
export const PAYMENTS_DIFFER = "a card payment and the books do not agree: see the operators' first page";
/** The reason of a finding while its payment has arrived and what follows from it is not committed. */
export const RECEIVED = "received";
/** Longer than taking an event takes; what is still only received then is in nobody's hands. */
export const IN_HAND_S = 60;
const FIRST_LOOK_MS = 1_000;
const LOOK_MS = 60_000;

/** Looks once a minute. While the database is away the last number stands. */
export function startPaymentWatch(deps: { count: () => Promise<number>; clock: Clock; log: Log }): PaymentWatch {
	const { count, clock, log } = deps;
	let open: number | undefined;
	let stopped = false;
	let cancel = clock.after(FIRST_LOOK_MS, look);

	function look(): void {
		count()
			.then(
				(found) => {
					open = found;
				},
				(error) => log.debug("what payments lack could not be read", { error }),
			)
			.finally(() => {
				if (!stopped) cancel = clock.after(LOOK_MS, look);
			});
	}

	return {
		open: () => open,
		stop() {
			stopped = true;
			cancel();
		},
	};
}

/** How many are open, without payments whose event is being taken in at this moment. One look at an index. */
export async function countOpenFindings(statements: Statements): Promise<number> {
	const [row] = await statements<{ count: string }>`
		select count(*) as count from stripe_finding where resolved_at is null
			and (reason <> ${RECEIVED} or found_at < clock_timestamp() - make_interval(secs => ${IN_HAND_S}::integer))`;
	return Number(row?.count);
}
