import type { LedgerEntry, TopUpView } from "./views.ts";

/** Words for the codes that the interface speaks in; each page says the same. */

export const TOP_UP_METHODS: Readonly<Record<TopUpView["method"], string>> = {
	transfer: "Bank transfer",
	card: "Card",
	demo: "Demo credit",
};

export const LEDGER_KINDS: Readonly<Record<LedgerEntry["kind"], string>> = {
	top_up: "Top-up",
	refund: "Refund",
	adjustment: "Adjustment",
	dispute: "Dispute",
	credit_note: "Credit note",
	usage: "Usage",
};

const DIALECTS: Readonly<Record<string, string>> = {
	openai: "OpenAI",
	vllm: "vLLM",
	sglang: "SGLang",
	ollama: "Ollama",
	tgi: "TGI",
	tei: "TEI",
};

export const dialectName = (code: string): string => DIALECTS[code] ?? code;
