import type { Language } from "../base/language.ts";

const fixed = (percent: number): string => (percent === 100 ? "100" : percent.toFixed(2));

/** The page's texts; the JSON is in English, for programs. `percent` and `minutes` come as they are shown, `time` as HTML. */
const ENGLISH_TEXTS = {
	title: "Service status",
	nav: { label: "Main", start: "Start", models: "Models", docs: "Docs" },
	headlines: {
		operational: "All services are connected",
		degraded: "Some services are not connected",
		unavailable: "No service is connected",
	},
	states: { connected: "connected", operational: "operational", degraded: "degraded", unavailable: "unavailable" },
	services: {
		chat: "Chat completions",
		completions: "Completions",
		embeddings: "Embeddings",
		transcription: "Audio transcription",
		image_generation: "Image generation",
		rerank: "Reranking",
		batch: "Managed batches",
	},
	dayKinds: {
		up: "Operational",
		degraded: "Degraded at times",
		partly: "Down at times",
		down: "Down for most of the day",
		none: "No data",
	},
	parts: { overall: "Overall", services: "Services", models: "Models" },
	everything: "All services and models",
	notDeployed: "No model for it is deployed.",
	noModel: "No model is deployed.",
	legend: "How to read this",
	explanation:
		"A column is a day in UTC. Once a minute it is noted what a request would have met: operational; degraded, if some of the servers or models took none; or down, if all did. Uptime is the share of the noted minutes that were not down. A minute that nobody noted counts for neither side.",
	today: "today",
	noData: "no data",
	noDataYet: "no data yet",
	neverRead: "The history has not been read yet.",
	date: (day: string) => day,
	percent: (percent: number) => `${fixed(percent)} %`,
	asOf: (time: string) => `As of ${time}.`,
	old: (minutes: string) => `The history is ${minutes} old.`,
	minutes: (minutes: number) => (minutes === 1 ? "1 minute" : `${minutes} minutes`),
	hours: (hours: number, minutes: number) => `${hours} h${minutes === 0 ? "" : ` ${minutes} min`}`,
	dayByDay: (title: string) => `${title}, day by day`,
	daysAgo: (days: number) => `${days} days ago`,
	uptime: (percent: string) => `${percent} uptime`,
	within: (days: number) => `in ${days} days`,
	troubles: (days: number) =>
		days === 1 ? "1 day was not fully operational" : `${days} days were not fully operational`,
	operational: (percent: string) => `${percent} operational`,
	degraded: (minutes: string) => `${minutes} degraded`,
	down: (minutes: string) => `${minutes} down`,
	withoutData: (minutes: string) => `${minutes} without data`,
	version: (version: string) => `Version ${version}.`,
};

export type StatusTexts = typeof ENGLISH_TEXTS;
/** Kinds of days; each has its own shape. */
export type DayKind = keyof StatusTexts["dayKinds"];

const GERMAN_TEXTS: StatusTexts = {
	title: "Dienststatus",
	nav: { label: "Hauptnavigation", start: "Start", models: "Modelle", docs: "Dokumentation" },
	headlines: {
		operational: "Alle Dienste sind verbunden",
		degraded: "Einige Dienste sind nicht verbunden",
		unavailable: "Kein Dienst ist verbunden",
	},
	states: {
		connected: "verbunden",
		operational: "in Betrieb",
		degraded: "eingeschränkt",
		unavailable: "nicht verfügbar",
	},
	services: {
		chat: "Chat Completions",
		completions: "Completions",
		embeddings: "Embeddings",
		transcription: "Transkription",
		image_generation: "Bilderzeugung",
		rerank: "Reranking",
		batch: "Stapel",
	},
	dayKinds: {
		up: "In Betrieb",
		degraded: "Zeitweise eingeschränkt",
		partly: "Zeitweise ausgefallen",
		down: "Den größten Teil des Tages ausgefallen",
		none: "Keine Daten",
	},
	parts: { overall: "Insgesamt", services: "Dienste", models: "Modelle" },
	everything: "Alle Dienste und Modelle",
	notDeployed: "Dafür ist kein Modell eingerichtet.",
	noModel: "Es ist kein Modell eingerichtet.",
	legend: "So ist das zu lesen",
	explanation:
		"Eine Spalte ist ein Tag in UTC. Jede Minute wird festgehalten, was eine Anfrage angetroffen hätte: in Betrieb; eingeschränkt, wenn einige Server oder Modelle keine annahmen; oder ausgefallen, wenn alle keine annahmen. Die Verfügbarkeit ist der Anteil der erfassten Minuten ohne Ausfall. Eine Minute, die niemand erfasst hat, zählt für keine Seite.",
	today: "heute",
	noData: "keine Daten",
	noDataYet: "noch keine Daten",
	neverRead: "Der Verlauf wurde noch nicht gelesen.",
	date: (day) => day.split("-").toReversed().join("."),
	percent: (percent) => `${fixed(percent).replace(".", ",")} %`,
	asOf: (time) => `Stand: ${time}.`,
	old: (minutes) => `Alter des Verlaufs: ${minutes}.`,
	minutes: (minutes) => (minutes === 1 ? "1 Minute" : `${minutes} Minuten`),
	hours: (hours, minutes) => `${hours} Std${minutes === 0 ? "" : ` ${minutes} Min`}`,
	dayByDay: (title) => `${title}, Tag für Tag`,
	daysAgo: (days) => `vor ${days} Tagen`,
	uptime: (percent) => `${percent} verfügbar`,
	within: (days) => `in ${days} Tagen`,
	troubles: (days) => (days === 1 ? "1 Tag mit Störungen" : `${days} Tage mit Störungen`),
	operational: (percent) => `${percent} in Betrieb`,
	degraded: (minutes) => `${minutes} eingeschränkt`,
	down: (minutes) => `${minutes} ausgefallen`,
	withoutData: (minutes) => `${minutes} ohne Daten`,
	version: (version) => `Version ${version}.`,
};

export const STATUS_TEXTS: Readonly<Record<Language, StatusTexts>> = { en: ENGLISH_TEXTS, de: GERMAN_TEXTS };
