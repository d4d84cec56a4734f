import Stripe from "stripe";
import {
	type Clearing,
	compareDispute,
	compareRefund,
	note,
	noteRest,
	SAME_AGAIN,
	takeAs,
} from "./stripe-clearing-lists.ts";
import { idOf } from "./stripe-events.ts";
import { settleFinding } from "./stripe-findings.ts";

/** Rows that are requested one by one, since Stripe's lists lack them or say too little. */
const ASKED_MAX = 3_000;
/** Lifetime of a Stripe page. */
const PAGE_HOURS = 25;

/** Checks that Stripe agrees with each row of the books about card payments. */
export async function compareBooks(clearing: Clearing): Promise<void> {
	await compareCredited(clearing);
	await compareCharged(clearing);
	await compareRefunded(clearing);
	await compareDisputed(clearing);
	await compareWaiting(clearing);
}

interface CreditedRow {
	top_up_id: string;
	checkout: string;
	payment: string | null;
	cents: string;
}

/** Each credited card top-up was paid: same page, payment and amount. */
async function compareCredited(clearing: Clearing): Promise<void> {
	const { statements, stripe, paid, sinceS } = clearing;
	const rows = await statements<CreditedRow>`
		select t.id as top_up_id, c.id as checkout, p.id as payment, t.amount_nano_usd / 10000000 as cents
		from stripe_checkout c join top_up t on t.id = c.top_up_id left join stripe_payment p on p.top_up_id = t.id
		where c.created_at >= to_timestamp(${sinceS}::double precision) and t.state not in ('pending', 'rejected')
		order by c.created_at`;
	for (const row of rows) {
		if (isTooMuch(clearing)) return noteRest(clearing, "credited payments", ASKED_MAX);
		const session =
			paid.get(row.checkout) ?? (await asked(clearing, () => stripe.checkout.sessions.retrieve(row.checkout)));
		const wrong =
			session === undefined || session.payment_status !== "paid"
				? "the books credited a payment that Stripe does not list as paid"
				: idOf(session.payment_intent) !== row.payment
					? "the books credited another payment than the one Stripe lists"
					: session.amount_total !== Number(row.cents)
						? "the books credited another amount than Stripe lists"
						: undefined;
		await noteWrong(clearing, { topUpId: row.top_up_id, cents: row.cents, wrong });
	}
}

async function noteWrong(
	clearing: Clearing,
	{ topUpId, cents, wrong }: { topUpId: string; cents: string; wrong: string | undefined },
): Promise<void> {
	const id = `books:${topUpId}`;
	if (wrong === undefined) await settleFinding(clearing.tx, id, SAME_AGAIN);
	else await note(clearing, { id, kind: "unpaid", reason: wrong, topUpId, amountCents: Number(cents) });
}

interface ChargedRow {
	top_up_id: string;
	payment: string;
	cents: string;
}

/** Each credited automatic top-up was paid: same payment and amount. */
async function compareCharged(clearing: Clearing): Promise<void> {
	const { statements, stripe, charged, sinceS } = clearing;
	const rows = await statements<ChargedRow>`
		select t.id as top_up_id, p.id as payment, t.amount_nano_usd / 10000000 as cents
		from auto_top_up_attempt a join top_up t on t.id = a.top_up_id join stripe_payment p on p.top_up_id = t.id
		where a.begun_at >= to_timestamp(${sinceS}::double precision) and t.state not in ('pending', 'rejected')
			and not exists (select 1 from stripe_checkout c where c.top_up_id = t.id)
		order by a.begun_at`;
	for (const { top_up_id, payment, cents } of rows) {
		if (isTooMuch(clearing)) return noteRest(clearing, "automatic payments", ASKED_MAX);
		const intent = charged.get(payment) ?? (await asked(clearing, () => stripe.paymentIntents.retrieve(payment)));
		const wrong =
			intent?.status !== "succeeded"
				? "the books credited a payment that Stripe does not list as paid"
				: intent.metadata?.top_up !== top_up_id
					? "the books credited another payment than the one Stripe lists"
					: intent.amount_received !== Number(cents)
						? "the books credited another amount than Stripe lists"
						: undefined;
		await noteWrong(clearing, { topUpId: top_up_id, cents, wrong });
	}
}

/** Each payment of which the books took something back. */
async function compareRefunded(clearing: Clearing): Promise<void> {
	const { statements, sinceS } = clearing;
	const rows = await statements<{ id: string }>`
		select p.id from stripe_payment p join (
			select c.top_up_id, c.created_at from stripe_checkout c union all select a.top_up_id, a.begun_at from auto_top_up_attempt a
		) m on m.top_up_id = p.top_up_id
		where p.refunded_cents > 0 and m.created_at >= to_timestamp(${sinceS}::double precision) order by m.created_at`;
	for (const { id } of rows) {
		if (isTooMuch(clearing)) return noteRest(clearing, "refunded payments", ASKED_MAX);
		clearing.outcome.asked += 1;
		await compareRefund(clearing, id);
	}
}

/** Each dispute in the books that Stripe's list lacks. */
async function compareDisputed(clearing: Clearing): Promise<void> {
	const { statements, stripe, sinceS, disputes } = clearing;
	const rows = await statements<{ id: string; amount: string; top_up_id: string }>`
		select d.id, d.amount_cents as amount, p.top_up_id from stripe_dispute d join stripe_payment p on p.id = d.payment_id
			join (
				select c.top_up_id, c.created_at from stripe_checkout c union all select a.top_up_id, a.begun_at from auto_top_up_attempt a
			) m on m.top_up_id = p.top_up_id
		where m.created_at >= to_timestamp(${sinceS}::double precision) order by m.created_at`;
	for (const row of rows) {
		if (isTooMuch(clearing)) return noteRest(clearing, "disputed payments", ASKED_MAX);
		if (disputes.has(row.id)) continue;
		const dispute = await asked(clearing, () => stripe.disputes.retrieve(row.id));
		const finding = { id: `dispute:${row.id}`, kind: "dispute" as const, topUpId: row.top_up_id };
		if (dispute !== undefined) await compareDispute(clearing, dispute);
		else
			await note(clearing, { ...finding, reason: "Stripe knows of no such dispute", amountCents: Number(row.amount) });
	}
}

/** Each pending top-up whose page can no longer be paid. */
async function compareWaiting(clearing: Clearing): Promise<void> {
	const { statements, stripe } = clearing;
	const rows = await statements<{ id: string }>`
		select c.id from top_up t join stripe_checkout c on c.top_up_id = t.id
		where t.state = 'pending' and c.created_at < now() - make_interval(hours => ${PAGE_HOURS}::integer) order by c.created_at`;
	for (const { id } of rows) {
		if (isTooMuch(clearing)) return noteRest(clearing, "pages that wait", ASKED_MAX);
		const page = await asked(clearing, () => stripe.checkout.sessions.retrieve(id));
		if (page?.status === "expired") await takeAs(clearing, "checkout.session.expired", page);
	}
}

const isTooMuch = ({ outcome }: Clearing) => outcome.asked >= ASKED_MAX;

/** Undefined if Stripe has no such object; any other error ends this clearing, which starts again later. */
async function asked<T>(clearing: Clearing, ask: () => Promise<T>): Promise<T | undefined> {
	clearing.outcome.asked += 1;
	try {
		return await ask();
	} catch (error) {
		if (error instanceof Stripe.errors.StripeInvalidRequestError && error.statusCode === 404) return undefined;
		throw error;
	}
}
