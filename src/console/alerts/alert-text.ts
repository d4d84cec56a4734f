import type { KnownText, TextId, TextValues } from "../../base/translate.ts";
import { type AutoTopUpStopReason, STOP_REASONS } from "../../billing/stop-reasons.ts";
import { formatUsd, nanoUsdOfColumn } from "../../money/nano-usd.ts";

/** An alert as its database row stores it: ids, timestamps, and amounts in nano-dollars as decimal text. */
export interface Alert {
	readonly id: string;
	readonly type: string;
	readonly data: Readonly<Record<string, unknown>>;
	readonly createdAtMs: number;
}

const AMOUNTS = ["balance", "threshold", "cap", "spent", "amount", "most"];

/** Content of the webhook's event. Fields that end in `_usd` are amounts in US dollars as decimal text. */
export function alertEvent({ id, type, data, createdAtMs }: Alert): string {
	const shown = Object.entries(data).map(([name, value]) =>
		AMOUNTS.includes(name) ? [`${name}_usd`, usd(value)] : [name, value],
	);
	const event = { id, object: "event", created_at: Math.floor(createdAtMs / 1000), type };
	return JSON.stringify({ ...event, data: Object.fromEntries(shown) });
}

const PERIODS: Readonly<Record<string, TextId>> = { day: " today", week: " this week", month: " this month" };

/** Subject and text of an alert's mail, without text that a person entered. `service` is the service's name. */
export function alertMail({ type, data }: Alert, service: string) {
	const values: TextValues = {
		...{ percent: String(data.percent), spent: usd(data.spent), cap: usd(data.cap), top: usd(data.most) },
		...{ balance: usd(data.balance), threshold: usd(data.threshold), amount: usd(data.amount) },
		...{ key: String(data.last_four), model: String(data.model), day: String(data.retires_on) },
		moment: String(data.expires_at ?? data.hour),
		period: PERIODS[String(data.period)] ?? "",
		why: STOP_REASONS[data.reason as AutoTopUpStopReason] ?? "",
	};
	const mail = (path: string, subject: TextId, says: TextId) => ({
		path,
		subject: { id: subject, values: { ...values, service } },
		says: { id: says, values },
	});
	switch (type) {
		case "credit.low":
			return mail(
				"/credit",
				"Low credit ({service})",
				"The credit is USD {balance}, below the USD {threshold} that you set. Requests that it does not cover are refused.",
			);
		case "key.cap_reached":
			return mail(
				`/keys/${data.key_id}`,
				"A key has used {percent} % of its cap ({service})",
				"The key …{key} has used {percent} % of its cap: USD {spent} of USD {cap}{period}.",
			);
		case "project.cap_reached":
			return mail(
				`/projects/${data.project_id}`,
				"A project has used {percent} % of its cap ({service})",
				"A project has used {percent} % of its cap: USD {spent} of USD {cap}{period}.",
			);
		case "key.expiring":
			return mail(
				`/keys/${data.key_id}`,
				"A key is about to expire ({service})",
				"The key …{key} expires at {moment}. Requests with it are refused from then on.",
			);
		case "spend.unusual":
			return mail(
				"/usage?range=24h&bucket=hour",
				"Unusual spending ({service})",
				"USD {spent} was spent in the hour from {moment}. That is more than three times the spend of the same hour and weekday in each of the last four weeks (at most USD {top}).",
			);
		case "model.retiring":
			return mail(
				`/models/${data.model}`,
				"A model that you use is being retired ({service})",
				"The model {model} retires on {day}. From the start of that day (UTC), requests for it are refused. Your account used it in the last 30 days.",
			);
		case "auto_top_up.stopped":
			if (data.reason === "undecided")
				return mail(
					"/credit",
					"An automatic top-up is delayed ({service})",
					"{why} The card may still be charged. If you need credit sooner, top up on the credit page.",
				);
			if (data.state === "needs_owner")
				return mail(
					"/credit",
					"A payment needs your confirmation ({service})",
					"An automatic top-up was not paid. {why} Nothing was charged. Confirm the payment on the credit page; no further top-up is tried until then.",
				);
			return mail(
				"/credit",
				"Automatic top-ups have stopped ({service})",
				"{why} To resume automatic top-ups, save the settings or another card on the credit page.",
			);
		default:
			return mail(
				"/credit",
				"Top-up confirmed ({service})",
				"Your top-up of USD {amount} is confirmed and added to your credit.",
			);
	}
}

/** Says why the recipient gets the mail and where to change that setting, if there is one. */
export function alertRecipientReason({ type }: Pick<Alert, "type">, origin: string): KnownText {
	const credit = { link: `${origin}/credit` };
	switch (type) {
		case "credit.low":
			return { id: "You receive this mail because your account has a low-credit alert: {link}", values: credit };
		case "auto_top_up.stopped":
			return { id: "You receive this mail because your account has automatic top-ups: {link}", values: credit };
		case "model.retiring":
			return { id: "You receive this mail because your account used the model recently." };
		default:
			return {
				id: "You receive this mail because your account has enabled this notification: {link}",
				values: { link: `${origin}/settings` },
			};
	}
}

const usd = (value: unknown): string => (value === undefined ? "" : formatUsd(nanoUsdOfColumn(String(value))));
