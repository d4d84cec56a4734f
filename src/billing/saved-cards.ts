import type Stripe from "stripe";
import { errorText } from "../base/error-record.ts";
import { Fault } from "../base/fault.ts";
import type { Log } from "../base/log.ts";
import { type Statements, toView } from "../db/statements.ts";
import { type AuditNote, auditNotesJson } from "../ops/audit.ts";
import { createCallSlots } from "./call-slots.ts";
import { isNotFound, isStripeRefusal, paymentServiceFault } from "./stripe-client.ts";
import { stripeId } from "./stripe-events.ts";

export interface SavedCard {
	readonly brand: string;
	readonly lastFour: string;
	readonly expMonth: number;
	readonly expYear: number;
	readonly savedAtMs: number;
}

interface SetupRow {
	id: string;
	kind: "card" | "payment" | "gone";
	old: boolean;
}

/** Seconds before Stripe is first queried about a page. Its event usually arrives within one second. */
const LOOK_S = 30;
const PAGE_HOURS = 25;
const COLLECTED_AT_ONCE_MAX = 10;

/** Cards that customers save on Stripe's page for automatic top-ups. */
export function createSavedCards(
	deps: { statements: Statements; stripe: Stripe; log: Log },
	options: { serviceName: string },
) {
	const { statements, stripe, log } = deps;
	const underWay = createCallSlots(COLLECTED_AT_ONCE_MAX);

	/** Deletes the card at Stripe. After a failure only this row names the card: it is retried and never charged. */
	async function detach(paymentMethodId: string): Promise<void> {
		await stripe.paymentMethods.detach(paymentMethodId).catch((error) => {
			// Stripe does not know the card, because it was deleted before.
			if (!isStripeRefusal(error)) throw error;
		});
		await statements`update card_setup set state = 'done' where id = ${paymentMethodId} and kind = 'gone'`;
	}

	/** Never rejects: if Stripe does not answer, `collect` repeats the deletion. */
	async function detachSoon(paymentMethodId: string): Promise<void> {
		await detach(paymentMethodId).catch((error) =>
			log.warn("a card was removed here and not yet at the payment service; it is tried again", {
				problem: errorText(error),
			}),
		);
	}

	/** Handles a finished page. Stripe's event only triggers this call, which reads the page's state from Stripe. */
	async function finish({ id, kind, old }: SetupRow): Promise<void> {
		if (kind === "gone") return detach(id);
		const page = await stripe.checkout.sessions.retrieve(id, {
			expand: ["setup_intent.payment_method", "payment_intent.payment_method"],
		});
		const card = page.status === "complete" ? cardOf(page) : undefined;
		if (page.status !== "complete") {
			if (page.status === "expired" || old)
				await statements`update card_setup set state = 'closed' where id = ${id} and state = 'open'`;
			return;
		}
		// One statement: if the page was closed before, nothing is saved and the previous card stays.
		const [gone] = await statements<{ id: string }>`
			with done as (
				update card_setup set state = 'done' where id = ${id} and state = 'open' returning account_id
			), before as (
				select c.account_id, c.payment_method_id from saved_card c join done d on d.account_id = c.account_id for update of c
			), saved as (
				update saved_card c set payment_method_id = ${card?.id ?? null}, brand = ${card?.brand ?? null}, last_four = ${card?.last4 ?? null},
					exp_month = ${card?.expMonth ?? null}::integer, exp_year = ${card?.expYear ?? null}::integer, saved_at = clock_timestamp()
				from before b where c.account_id = b.account_id and ${card !== undefined}::boolean and c.customer_id = ${stripeId(page.customer)}
				returning b.account_id, b.payment_method_id
			)
			insert into card_setup (id, account_id, kind, look_at)
				select payment_method_id, account_id, 'gone', now() + make_interval(secs => ${LOOK_S}::integer) from saved
				where payment_method_id <> ${card?.id ?? ""} on conflict (id) do update set state = 'open', look_at = excluded.look_at
			returning id`;
		if (gone !== undefined) await detachSoon(gone.id);
	}

	return {
		/** Registers a page on which an owner pays an automatic top-up, so that the page's card is saved for later ones. */
		async expect(accountId: string, pageId: string): Promise<void> {
			await statements`
				insert into card_setup (id, account_id, kind, look_at)
				values (${pageId}, ${accountId}, 'payment', now() + make_interval(secs => ${LOOK_S}::integer)) on conflict do nothing`;
		},

		async read(accountId: string): Promise<SavedCard | null> {
			const [row] = await statements<object>`
				select brand, last_four, exp_month, exp_year, saved_at from saved_card
				where account_id = ${accountId} and payment_method_id is not null`;
			return row === undefined ? null : toView<SavedCard>(row);
		},

		/**
		 * Opens Stripe's page for entering a card; returns its URL. Stripe redirects to `back` + "saved" or "cancelled".
		 */
		async setup(accountId: string, { email, back }: { email: string; back: string }, act?: AuditNote): Promise<string> {
			const pageFor = (customerId: string) =>
				stripe.checkout.sessions.create({
					mode: "setup",
					customer: customerId,
					allowed_payment_method_types: ["card"],
					metadata: { account: accountId },
					custom_text: {
						submit: { message: `${options.serviceName} saves this card for the automatic top-ups that you set.` },
					},
					success_url: `${back}saved`,
					cancel_url: `${back}cancelled`,
				});
			try {
				const known = await customer({ statements, stripe }, accountId, email);
				const page = await pageFor(known).catch(async (error) => {
					if (!isNotFound(error) || error.param !== "customer") throw error;
					return pageFor(await customer({ statements, stripe }, accountId, email, known));
				});
				if (page.url === null) throw new Error("the page has no address");
				// Closes older pages, because only the newest page may save a card.
				await statements`
					with closed as (
						update card_setup set state = 'closed' where account_id = ${accountId} and state = 'open' and kind = 'card'
					), opened as (
						insert into card_setup (id, account_id, kind, look_at)
						values (${page.id}, ${accountId}, 'card', now() + make_interval(secs => ${LOOK_S}::integer))
					)
					select audit_note(${auditNotesJson(act)}::text::jsonb, ${accountId}, ${accountId})`;
				return page.url;
			} catch (error) {
				throw paymentServiceFault(error);
			}
		},

		/**
		 * Deletes the card here and at Stripe, and switches automatic top-ups off. If Stripe fails, `collect` repeats it.
		 */
		async remove(accountId: string, act?: AuditNote): Promise<void> {
			const [row] = await statements<{ payment_method_id: string }>`
				with off as (
					delete from auto_top_up where account_id = ${accountId}
				), woken as (
					update auto_top_up_attempt set look_at = now() where account_id = ${accountId} and state = 'needs_authentication'
				), closed as (
					update card_setup set state = 'closed' where account_id = ${accountId} and state = 'open' and kind <> 'gone'
				), before as (
					select account_id, payment_method_id from saved_card where account_id = ${accountId} for update
				), gone as (
					insert into card_setup (id, account_id, kind, look_at)
						select payment_method_id, account_id, 'gone', now() + make_interval(secs => ${LOOK_S}::integer) from before
						where payment_method_id is not null on conflict (id) do update set state = 'open', look_at = excluded.look_at
				)
				update saved_card c set payment_method_id = null, brand = null, last_four = null, exp_month = null, exp_year = null, saved_at = null
				from before b where c.account_id = b.account_id and b.payment_method_id is not null
				returning b.payment_method_id, audit_note(${auditNotesJson(act)}::text::jsonb, c.account_id, c.account_id)`;
			if (row === undefined) throw new Fault("not_found", "No card is saved.");
			await detachSoon(row.payment_method_id);
		},

		/** Saves cards from finished pages and deletes removed cards at Stripe. The next call need not wait for it. */
		collect(): Promise<void> {
			const due = (places: number) => statements<SetupRow>`
				update card_setup set look_at = now() + greatest(make_interval(secs => ${LOOK_S}::integer), (now() - created_at) / 2)
				where id in (
					select id from card_setup where state = 'open' and look_at <= now() order by look_at
					limit ${places} for update skip locked)
				returning id, kind, created_at < now() - make_interval(hours => ${PAGE_HOURS}::integer) as old`;
			return underWay.begin(due, (row) =>
				finish(row).catch((error) =>
					log.warn("a card page could not be checked and is retried", { page: row.id, problem: errorText(error) }),
				),
			);
		},

		ended: underWay.ended,
	};
}

/** The account's customer id at Stripe, which is created if needed. `gone`: an id that was deleted at Stripe. */
async function customer(
	{ statements, stripe }: { statements: Statements; stripe: Stripe },
	accountId: string,
	email: string,
	gone?: string,
): Promise<string> {
	const read = () =>
		statements<{ id: string }>`select customer_id as id from saved_card where account_id = ${accountId}`;
	const [known] = await read();
	if (known !== undefined && known.id !== gone) return known.id;
	const made = await stripe.customers.create({ email, metadata: { account: accountId } });
	await statements`
		insert into saved_card as c (account_id, customer_id) values (${accountId}, ${made.id})
		on conflict (account_id) do update set customer_id = excluded.customer_id where c.customer_id = ${gone ?? null}`;
	// If two customers were created concurrently, uses the one that was stored first.
	const [kept] = await read();
	return kept?.id ?? made.id;
}

/** Id of the page's payment method. Undefined unless it is a card, because only cards can be charged later. */
function cardOf(page: Stripe.Checkout.Session) {
	const intent = page.setup_intent ?? page.payment_intent;
	const method = typeof intent === "string" ? undefined : intent?.payment_method;
	if (typeof method !== "object" || method === null || method.type !== "card" || !method.card) return undefined;
	const { brand, last4, exp_month: expMonth, exp_year: expYear } = method.card;
	return { id: method.id, brand, last4, expMonth, expYear };
}
