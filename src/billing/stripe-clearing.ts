import Stripe from "stripe";
import type { Clock } from "../base/clock.ts";
import {
	AGREES_AGAIN,
	addFinding,
	applyEvent,
	COMPARED_DAYS,
	type Comparison,
	compareDispute,
	compareLists,
	compareRefund,
	recordUncompared,
} from "./stripe-clearing-lists.ts";
import { stripeId } from "./stripe-events.ts";
import { resolveFinding } from "./stripe-findings.ts";

/** Maximum rows of the books that are looked up one by one, because Stripe's lists lack them or contain too little. */
const ASKED_MAX = 3_000;
/** Hours for which Stripe's payment pages live, with a margin. */
const PAGE_HOURS = 25;
const DAY_S = 24 * 3_600;
/** Seconds after which an unfinished comparison counts as interrupted. */
const RUNNING_MAX_S = 3_600;

type Deps = Pick<Comparison, "tx" | "statements" | "stripe" | "log"> & { readonly clock: Clock };

/**
 * Compares Stripe's sessions, saved-card payments, refunds and disputes with the books in both directions, once a day
 * on one instance. Null if the comparison is not due. Processes an object that no event reported as its event would be;
 * other differences become findings.
 */
export async function compareDaily(deps: Deps): Promise<Comparison["outcome"] | null> {
	const { statements, clock, log } = deps;
	const day = new Date(clock.wallMs()).toISOString().slice(0, 10);
	const claimed = await statements`
		insert into stripe_clearing as c (day) values (${day}::date) on conflict (day) do update set started_at = clock_timestamp()
		where c.finished_at is null and c.started_at < clock_timestamp() - make_interval(secs => ${RUNNING_MAX_S}::integer)
		returning 1`;
	if (claimed.length === 0) return null;
	try {
		const outcome = await clear(deps, day);
		await statements`
			update stripe_clearing set finished_at = clock_timestamp(), outcome = ${JSON.stringify(outcome)}::text::jsonb where day = ${day}::date`;
		log.info("payments were compared with Stripe's lists", { ...outcome });
		return outcome;
	} catch (error) {
		// Resets the start time, so that the next check repeats the comparison.
		await statements`update stripe_clearing set started_at = '-infinity' where day = ${day}::date`;
		throw error;
	}
}

async function clear(deps: Deps, day: string): Promise<Comparison["outcome"]> {
	const clearing: Comparison = {
		...deps,
		day,
		sinceS: Math.floor(deps.clock.wallMs() / 1000) - COMPARED_DAYS * DAY_S,
		outcome: { compared: 0, taken: 0, asked: 0 },
		paid: new Map(),
		charged: new Map(),
		refunds: new Set(),
		disputes: new Set(),
	};
	await compareLists(clearing);
	await compareBooks(clearing);
	return clearing.outcome;
}

/** Checks that Stripe confirms each row of the books that concerns card payments. */
async function compareBooks(clearing: Comparison): Promise<void> {
	await compareCredited(clearing);
	await compareRefunded(clearing);
	await compareDisputed(clearing);
	await compareWaiting(clearing);
}

interface CreditedRow {
	top_up_id: string;
	/** Page of the payment; null for an automatic top-up without a page. */
	page: string | null;
	payment: string | null;
	cents: string;
}

/** Checks that each credited card top-up was paid at Stripe by the recorded payment and with the same amount. */
async function compareCredited(clearing: Comparison): Promise<void> {
	const rows = await clearing.statements<CreditedRow>`
		select t.id as top_up_id, m.page, p.id as payment, t.amount_nano_usd / 10000000 as cents
		from (
			select top_up_id, created_at, id as page from stripe_checkout
			union all select a.top_up_id, a.begun_at, null from auto_top_up_attempt a
				where not exists (select 1 from stripe_checkout c where c.top_up_id = a.top_up_id)
		) m join top_up t on t.id = m.top_up_id left join stripe_payment p on p.top_up_id = t.id
		where m.created_at >= to_timestamp(${clearing.sinceS}::double precision) and t.state not in ('pending', 'rejected')
		order by m.created_at`;
	for (const row of rows) {
		if (isTooMuch(clearing)) return recordUncompared(clearing, "credited payments", ASKED_MAX);
		const { top_up_id: topUpId, cents } = row;
		const seen = row.page === null ? await paidByCard(clearing, row) : await paidOnPage(clearing, row, row.page);
		const wrong = !seen?.isPaid
			? "the books credited a payment that Stripe does not list as paid"
			: !seen.isSame
				? "the books credited another payment than the one Stripe lists"
				: seen.cents !== Number(cents)
					? "the books credited another amount than Stripe lists"
					: undefined;
		const id = `books:${topUpId}`;
		if (wrong === undefined) await resolveFinding(clearing.tx, id, AGREES_AGAIN);
		else await addFinding(clearing, { id, kind: "unpaid", reason: wrong, topUpId, amountCents: Number(cents) });
	}
}

async function paidOnPage(clearing: Comparison, { payment }: CreditedRow, page: string) {
	const { stripe, paid } = clearing;
	const session = paid.get(page) ?? (await asked(clearing, () => stripe.checkout.sessions.retrieve(page)));
	if (session === undefined) return undefined;
	const isSame = stripeId(session.payment_intent) === payment;
	return { isPaid: session.payment_status === "paid", isSame, cents: session.amount_total };
}

async function paidByCard(clearing: Comparison, { payment, top_up_id }: CreditedRow) {
	const { stripe, charged } = clearing;
	if (payment === null) return undefined;
	const intent = charged.get(payment) ?? (await asked(clearing, () => stripe.paymentIntents.retrieve(payment)));
	if (intent === undefined) return undefined;
	const isSame = intent.metadata?.top_up === top_up_id;
	return { isPaid: intent.status === "succeeded", isSame, cents: intent.amount_received };
}

/** Checks each payment from which the books took credit back. */
async function compareRefunded(clearing: Comparison): Promise<void> {
	const { statements, sinceS } = clearing;
	const rows = await statements<{ id: string }>`
		select p.id from stripe_payment p join (
			select c.top_up_id, c.created_at from stripe_checkout c union all select a.top_up_id, a.begun_at from auto_top_up_attempt a
		) m on m.top_up_id = p.top_up_id
		where p.refunded_cents > 0 and m.created_at >= to_timestamp(${sinceS}::double precision) order by m.created_at`;
	for (const { id } of rows) {
		if (isTooMuch(clearing)) return recordUncompared(clearing, "refunded payments", ASKED_MAX);
		clearing.outcome.asked += 1;
		await compareRefund(clearing, id);
	}
}

/** Checks each dispute in the books that is missing in Stripe's list. */
async function compareDisputed(clearing: Comparison): Promise<void> {
	const { statements, stripe, sinceS, disputes } = clearing;
	const rows = await statements<{ id: string; amount: string; top_up_id: string }>`
		select d.id, d.amount_cents as amount, p.top_up_id from stripe_dispute d join stripe_payment p on p.id = d.payment_id
			join (
				select c.top_up_id, c.created_at from stripe_checkout c union all select a.top_up_id, a.begun_at from auto_top_up_attempt a
			) m on m.top_up_id = p.top_up_id
		where m.created_at >= to_timestamp(${sinceS}::double precision) order by m.created_at`;
	for (const row of rows) {
		if (isTooMuch(clearing)) return recordUncompared(clearing, "disputed payments", ASKED_MAX);
		if (disputes.has(row.id)) continue;
		const dispute = await asked(clearing, () => stripe.disputes.retrieve(row.id));
		const finding = { id: `dispute:${row.id}`, kind: "dispute" as const, topUpId: row.top_up_id };
		const reason = "Stripe knows of no such dispute";
		if (dispute !== undefined) await compareDispute(clearing, dispute);
		else await addFinding(clearing, { ...finding, reason, amountCents: Number(row.amount) });
	}
}

/** Checks each pending top-up whose page can no longer be paid. */
async function compareWaiting(clearing: Comparison): Promise<void> {
	const { statements, stripe } = clearing;
	const rows = await statements<{ id: string }>`
		select c.id from top_up t join stripe_checkout c on c.top_up_id = t.id
		where t.state = 'pending' and c.created_at < now() - make_interval(hours => ${PAGE_HOURS}::integer) order by c.created_at`;
	for (const { id } of rows) {
		if (isTooMuch(clearing)) return recordUncompared(clearing, "pages that wait", ASKED_MAX);
		const page = await asked(clearing, () => stripe.checkout.sessions.retrieve(id));
		if (page?.status === "expired") await applyEvent(clearing, "checkout.session.expired", page);
	}
}

const isTooMuch = ({ outcome }: Comparison) => outcome.asked >= ASKED_MAX;

/** Looks up an object at Stripe. Undefined if it does not exist; any other error ends the comparison. */
async function asked<T>(clearing: Comparison, ask: () => Promise<T>): Promise<T | undefined> {
	clearing.outcome.asked += 1;
	try {
		return await ask();
	} catch (error) {
		if (error instanceof Stripe.errors.StripeInvalidRequestError && error.statusCode === 404) return undefined;
		throw error;
	}
}
