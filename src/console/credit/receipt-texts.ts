import type { Language } from "../../base/language.ts";
import type { TopUpRecord } from "../../billing/top-ups.ts";

/** What a receipt says, in the language of who opens it. */
export interface ReceiptTexts {
	readonly methods: Readonly<Record<TopUpRecord["method"], string>>;
	readonly states: Readonly<Record<TopUpRecord["state"], string>>;
	readonly receipt: string;
	readonly topUp: string;
	readonly number: string;
	readonly service: string;
	readonly soldBy: string;
	readonly account: string;
	readonly billedTo: string;
	readonly amount: string;
	readonly paidBy: string;
	readonly reference: string;
	readonly date: string;
	readonly state: string;
	readonly explanation: string;
}

export const RECEIPT_TEXTS: Readonly<Record<Language, ReceiptTexts>> = {
	en: {
		methods: { transfer: "Bank transfer", card: "Card", demo: "Demonstration, no payment" },
		states: {
			pending: "Pending: not paid yet",
			confirmed: "Paid",
			rejected: "Rejected: not paid",
			refunded: "Refunded",
			disputed: "Disputed",
		},
		receipt: "Receipt",
		topUp: "Top-up",
		number: "Receipt number",
		service: "Service",
		soldBy: "Sold by",
		account: "Account",
		billedTo: "Billed to",
		amount: "Amount",
		paidBy: "Paid by",
		reference: "Reference",
		date: "Date",
		state: "State",
		explanation: "Prepaid credit for inference. It is spent as requests are made.",
	},
	de: {
		methods: { transfer: "Überweisung", card: "Karte", demo: "Vorführung, keine Zahlung" },
		states: {
			pending: "Offen: noch nicht bezahlt",
			confirmed: "Bezahlt",
			rejected: "Abgelehnt: nicht bezahlt",
			refunded: "Erstattet",
			disputed: "Angefochten",
		},
		receipt: "Beleg",
		topUp: "Aufladung",
		number: "Belegnummer",
		service: "Dienst",
		soldBy: "Verkäufer",
		account: "Konto",
		billedTo: "Rechnungsempfänger",
		amount: "Betrag",
		paidBy: "Zahlungsweg",
		reference: "Referenz",
		date: "Datum",
		state: "Stand",
		explanation: "Vorausbezahltes Guthaben für Inferenz. Es wird mit den Anfragen verbraucht.",
	},
};
