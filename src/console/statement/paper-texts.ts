import type { Language } from "../../base/language.ts";
import type { Statement } from "./statement.ts";
import type { StatementLine } from "./statement-lines.ts";

/** What statements and receipts say, in the language of who fetches them. The CSV is the same for everybody. */
export interface PaperTexts {
	readonly kinds: Readonly<Record<StatementLine["kind"], string>>;
	/** Of more than one. */
	readonly sums: Readonly<Record<Exclude<Statement["entries"][number]["kind"], never>, string>>;
	readonly states: Readonly<Record<Statement["state"], string>>;
	/** Before the month, as it is written there. */
	readonly statement: string;
	readonly from: string;
	readonly to: string;
	readonly account: string;
	readonly period: string;
	readonly state: string;
	/** `first` and `last` day. */
	readonly days: (first: string, last: string) => string;
	readonly summary: string;
	readonly opening: string;
	readonly closing: string;
	readonly usage: string;
	readonly movements: string;
	readonly byModel: string;
	readonly byProject: string;
	/** What was used in none. */
	readonly noProject: string;
	readonly byDay: string;
	readonly continued: (title: string) => string;
	/** `shown`: the count as it is written. */
	readonly requests: (count: bigint, shown: string) => string;
	readonly tokens: (shown: string) => string;
	/** Null: nobody counted them. */
	readonly more: (count: number | null) => string;
	readonly page: (page: number, pages: number) => string;
	readonly missing: string;
	readonly vatId: string;
	readonly thousands: string;
	readonly point: string;
}

export const PAPER_TEXTS: Readonly<Record<Language, PaperTexts>> = {
	en: {
		kinds: {
			top_up: "Top-up",
			refund: "Refund",
			adjustment: "Adjustment",
			dispute: "Dispute",
			credit_note: "Credit note",
			usage: "Usage",
			late_usage: "Usage of earlier months",
			recorded_later: "Recorded later",
			more: "Further movements",
		},
		sums: {
			top_up: "Top-ups",
			refund: "Refunds",
			adjustment: "Adjustments",
			dispute: "Disputes",
			credit_note: "Credit notes",
		},
		states: {
			closed: "Closed: its figures do not change any more",
			over: "Preliminary: the month is over and not closed yet",
			running: "Preliminary: the month is not over",
		},
		statement: "Statement",
		from: "From",
		to: "To",
		account: "Account",
		period: "Period",
		state: "State",
		days: (first, last) => `${first} to ${last}, days in UTC`,
		summary: "Summary",
		opening: "Opening balance",
		closing: "Closing balance",
		usage: "Usage",
		movements: "Movements",
		byModel: "Usage by model",
		byProject: "Usage by project",
		noProject: "No project",
		byDay: "Usage by day",
		continued: (title) => `${title}, continued`,
		requests: (count, shown) => `${shown} ${count === 1n ? "request" : "requests"}`,
		tokens: (shown) => `${shown} tokens`,
		more: (count) => `${count ?? "Many"} more are in the CSV.`,
		page: (page, pages) => `page ${page} of ${pages}`,
		missing: "\uFFFD is a sign that no font here has; the CSV of this month has it",
		vatId: "VAT ID",
		thousands: ",",
		point: ".",
	},
	de: {
		kinds: {
			top_up: "Aufladung",
			refund: "Erstattung",
			adjustment: "Korrektur",
			dispute: "Rückbuchung",
			credit_note: "Gutschrift",
			usage: "Verbrauch",
			late_usage: "Verbrauch früherer Monate",
			recorded_later: "Später erfasst",
			more: "Weitere Bewegungen",
		},
		sums: {
			top_up: "Aufladungen",
			refund: "Erstattungen",
			adjustment: "Korrekturen",
			dispute: "Rückbuchungen",
			credit_note: "Gutschriften",
		},
		states: {
			closed: "Abgeschlossen: Seine Zahlen ändern sich nicht mehr",
			over: "Vorläufig: Der Monat ist vorbei und noch nicht abgeschlossen",
			running: "Vorläufig: Der Monat ist noch nicht vorbei",
		},
		statement: "Auszug",
		from: "Von",
		to: "An",
		account: "Konto",
		period: "Zeitraum",
		state: "Stand",
		days: (first, last) => `${first} bis ${last}, Tage in UTC`,
		summary: "Übersicht",
		opening: "Anfangsbestand",
		closing: "Endbestand",
		usage: "Verbrauch",
		movements: "Bewegungen",
		byModel: "Verbrauch nach Modell",
		byProject: "Verbrauch nach Projekt",
		noProject: "Kein Projekt",
		byDay: "Verbrauch nach Tag",
		continued: (title) => `${title}, Fortsetzung`,
		requests: (count, shown) => `${shown} ${count === 1n ? "Anfrage" : "Anfragen"}`,
		tokens: (shown) => `${shown} Token`,
		more: (count) =>
			count === null ? "Viele weitere stehen in der CSV-Datei." : `${count} weitere stehen in der CSV-Datei.`,
		page: (page, pages) => `Seite ${page} von ${pages}`,
		missing: "\uFFFD steht für ein Zeichen, das hier keine Schrift hat; in der CSV-Datei des Monats steht es",
		vatId: "USt-IdNr.",
		thousands: ".",
		point: ",",
	},
};
