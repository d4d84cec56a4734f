import { germanMoment } from "../../base/translate.ts";
import { STOP_REASONS, type StopReason } from "../../billing/stop-reasons.ts";
import { formatUsd, nanoUsdOfColumn } from "../../money/nano-usd.ts";

/** What an alert says of itself, as the look wrote it down: ids, moments, and nano-dollars as decimal text. */
export interface Alert {
	/** `evt_…` */
	readonly id: string;
	readonly type: string;
	readonly data: Readonly<Record<string, unknown>>;
	readonly createdAtMs: number;
}

const AMOUNTS = ["balance", "threshold", "cap", "spent", "amount", "most"];

/** The event as the webhook gets it: amounts are US dollars as decimal text, under names that end in `_usd`. */
export function alertEvent({ id, type, data, createdAtMs }: Alert): string {
	const shown = Object.entries(data).map(([name, value]) =>
		AMOUNTS.includes(name) ? [`${name}_usd`, usd(value)] : [name, value],
	);
	const event = { id, object: "event", created_at: Math.floor(createdAtMs / 1000), type };
	return JSON.stringify({ ...event, data: Object.fromEntries(shown) });
}

/** Subject, first line and the page that it is about. Nothing that somebody wrote stands in it. */
export function alertMail({ type, data }: Alert): { subject: string; says: string; path: string } {
	const key = `/keys/${data.key_id}`;
	switch (type) {
		case "credit.low":
			return {
				subject: "Credit is low",
				says: `The credit is USD ${usd(data.balance)}, below the USD ${usd(data.threshold)} that you set. Requests that it does not cover are refused.`,
				path: "/credit",
			};
		case "key.cap_reached":
			return {
				subject: `A key has used ${data.percent} % of its cap`,
				says: `The key …${data.last_four} has used ${data.percent} % of its cap: USD ${usd(data.spent)} of USD ${usd(data.cap)}${data.period === "lifetime" ? "" : ` this ${data.period}`}.`,
				path: key,
			};
		case "project.cap_reached":
			return {
				subject: `A project has used ${data.percent} % of its cap`,
				says: `A project has used ${data.percent} % of its cap: USD ${usd(data.spent)} of USD ${usd(data.cap)}${data.period === "lifetime" ? "" : ` this ${data.period}`}.`,
				path: `/projects/${data.project_id}`,
			};
		case "key.expiring":
			return {
				subject: "A key is about to expire",
				says: `The key …${data.last_four} expires at ${data.expires_at}. Requests with it are refused from then on.`,
				path: key,
			};
		case "spend.unusual":
			return {
				subject: "Unusual spending",
				says: `USD ${usd(data.spent)} were spent in the hour from ${data.hour}: more than three times what was spent in the same hour of the same weekday in any of the last four weeks (at most USD ${usd(data.most)}).`,
				path: "/usage?range=24h&bucket=hour",
			};
		case "model.retiring":
			return {
				subject: "A model that you use goes away",
				says: `The model ${data.model} is retired on ${data.retires_on}: from the beginning of that day (UTC) on, requests that name it are refused. Your account used it in the last 30 days.`,
				path: `/models/${data.model}`,
			};
		case "auto_top_up.stopped": {
			const why = STOP_REASONS[data.reason as StopReason] ?? "";
			if (data.reason === "undecided")
				return {
					subject: "An automatic top-up takes long",
					says: `${why} The card may still be charged. If credit is needed before, it can be topped up on the credit page.`,
					path: "/credit",
				};
			return data.state === "needs_owner"
				? {
						subject: "A payment waits for you",
						says: `An automatic top-up was not paid. ${why} Nothing was charged. Confirm the payment on the credit page; until then no further one is tried.`,
						path: "/credit",
					}
				: {
						subject: "Automatic top-ups have stopped",
						says: `${why} No automatic top-up is tried until somebody saves the settings or another card on the credit page.`,
						path: "/credit",
					};
		}
		default:
			return {
				subject: "A top-up is confirmed",
				says: `A top-up of USD ${usd(data.amount)} is confirmed and is in your credit.`,
				path: "/credit",
			};
	}
}

const GERMAN_STOP_REASONS = {
	declined: "Die Karte wurde abgelehnt.",
	funds: "Die Karte wurde abgelehnt: Ihre Deckung oder ihr Limit reicht für die Zahlung nicht aus.",
	expired: "Die Karte ist abgelaufen.",
	card_gone: "Die Karte ist beim Zahlungsdienst nicht mehr bekannt.",
	authentication: "Die Bank verlangt, dass der Karteninhaber die Zahlung bestätigt.",
	changed: "Einstellungen, Karte oder Kontostatus wurden geändert, bevor etwas abgebucht wurde.",
	unanswered: "Der Zahlungsdienst war nicht erreichbar. Es wurde nichts abgebucht.",
	undecided: "Die Bank hat seit zwei Tagen nicht über eine Zahlung entschieden. Bis dahin wird keine weitere versucht.",
	refunded: "Eine Kartenzahlung dieses Kontos wurde erstattet.",
	disputed: "Eine Kartenzahlung dieses Kontos ist angefochten.",
	uncredited:
		"Die Karte wurde belastet, aber es konnte kein Guthaben dafür gutgeschrieben werden. Der Betreiber ist alarmiert.",
} as const satisfies Readonly<Record<StopReason, string>>;

const GERMAN_PERIODS: Readonly<Record<string, string>> = {
	lifetime: "",
	day: " an diesem Tag",
	week: " in dieser Woche",
	month: " in diesem Monat",
};

/** The same in German, with amounts and moments as German writes them. */
export function germanAlertMail({ type, data }: Alert): { subject: string; says: string } {
	switch (type) {
		case "credit.low":
			return {
				subject: "Das Guthaben ist niedrig",
				says: `Das Guthaben beträgt USD ${germanUsd(data.balance)} und liegt unter den USD ${germanUsd(data.threshold)}, die Sie festgelegt haben. Anfragen, die es nicht deckt, werden abgewiesen.`,
			};
		case "key.cap_reached":
			return {
				subject: `Ein Schlüssel hat ${data.percent} % seiner Obergrenze verbraucht`,
				says: `Der Schlüssel …${data.last_four} hat ${data.percent} % seiner Obergrenze verbraucht: USD ${germanUsd(data.spent)} von USD ${germanUsd(data.cap)}${GERMAN_PERIODS[String(data.period)] ?? ""}.`,
			};
		case "project.cap_reached":
			return {
				subject: `Ein Projekt hat ${data.percent} % seiner Obergrenze verbraucht`,
				says: `Ein Projekt hat ${data.percent} % seiner Obergrenze verbraucht: USD ${germanUsd(data.spent)} von USD ${germanUsd(data.cap)}${GERMAN_PERIODS[String(data.period)] ?? ""}.`,
			};
		case "key.expiring":
			return {
				subject: "Ein Schlüssel läuft bald ab",
				says: `Der Schlüssel …${data.last_four} läuft am ${germanMoment(String(data.expires_at))} ab. Anfragen mit ihm werden von da an abgewiesen.`,
			};
		case "spend.unusual":
			return {
				subject: "Ungewöhnliche Ausgaben",
				says: `In der Stunde ab ${germanMoment(String(data.hour))} wurden USD ${germanUsd(data.spent)} ausgegeben: mehr als dreimal so viel wie in derselben Stunde desselben Wochentags in jeder der letzten vier Wochen (höchstens USD ${germanUsd(data.most)}).`,
			};
		case "model.retiring":
			return {
				subject: "Ein Modell, das Sie benutzen, entfällt",
				says: `Das Modell ${data.model} entfällt am ${germanMoment(String(data.retires_on))}: Vom Beginn dieses Tages (UTC) an werden Anfragen an dieses Modell abgewiesen. Ihr Konto hat es in den letzten 30 Tagen benutzt.`,
			};
		case "auto_top_up.stopped": {
			const why = GERMAN_STOP_REASONS[data.reason as StopReason] ?? "";
			if (data.reason === "undecided")
				return {
					subject: "Eine automatische Aufladung dauert lange",
					says: `${why} Die Karte kann noch belastet werden. Wird vorher Guthaben gebraucht, kann es auf der Guthabenseite aufgeladen werden.`,
				};
			return data.state === "needs_owner"
				? {
						subject: "Eine Zahlung wartet auf Sie",
						says: `Eine automatische Aufladung wurde nicht bezahlt. ${why} Es wurde nichts abgebucht. Bestätigen Sie die Zahlung auf der Guthabenseite; bis dahin wird keine weitere versucht.`,
					}
				: {
						subject: "Automatische Aufladungen sind beendet",
						says: `${why} Es wird keine automatische Aufladung versucht, bis jemand auf der Guthabenseite die Einstellungen oder eine andere Karte speichert.`,
					};
		}
		default:
			return {
				subject: "Eine Aufladung ist bestätigt",
				says: `Eine Aufladung von USD ${germanUsd(data.amount)} ist bestätigt und Ihrem Guthaben gutgeschrieben.`,
			};
	}
}

/** What is mailed whether the account asked for its type or not, with the reason: the settings of notices keep none of it away. */
const MAILED_ANYWAY: Readonly<
	Record<string, { readonly english: string; readonly german: string; readonly path: string }>
> = {
	"credit.low": {
		english: "your account has an alert of low credit",
		german: "Ihr Konto eine Warnung bei niedrigem Guthaben hat",
		path: "/credit",
	},
	"auto_top_up.stopped": {
		english: "your account has automatic top-ups",
		german: "Ihr Konto automatische Aufladungen hat",
		path: "/credit",
	},
	"model.retiring": {
		english: "your account used the model lately",
		german: "Ihr Konto das Modell in letzter Zeit benutzt hat",
		path: "",
	},
};
const ASKED_FOR = { english: "your account asks for it", german: "Ihr Konto sie verlangt", path: "/settings" };

/** Why somebody gets it, and where that can be changed, if it can. `origin`: where people reach the service. */
export function alertReason({ type }: Pick<Alert, "type">, origin: string): { english: string; german: string } {
	const { english, german, path } = MAILED_ANYWAY[type] ?? ASKED_FOR;
	const end = path === "" ? "." : `: ${origin}${path}`;
	return {
		english: `You get this mail because ${english}${end}`,
		german: `Sie erhalten diese E-Mail, weil ${german}${end}`,
	};
}

const usd = (value: unknown): string => formatUsd(nanoUsdOfColumn(String(value)));
const germanUsd = (value: unknown): string => usd(value).replace(".", ",");
