import type { Language } from "../../base/language.ts";
import { type TextId, translateId } from "../../base/translate.ts";
import type { Statements } from "../../db/statements.ts";
import { type AuditNote, auditNotesJson } from "../../ops/audit.ts";
import { ConsoleError } from "../console-error.ts";

export interface InvoiceParty {
	readonly company: string;
	readonly address: string;
	readonly vatId: string;
}

const COMPANY = /^[^\p{Cc}]{0,200}$/u;
const ADDRESS = /^(?:[^\p{Cc}]{0,100}(?:\n|$)){0,8}$/u;
const VAT_ID = /^[\p{L}\p{N} ./+*-]{0,40}$/u;

export async function readBillingDetails(statements: Statements, accountId: string): Promise<InvoiceParty> {
	const [row] = await statements<InvoiceParty>`
		select company, address, vat_id as "vatId" from billing_details where account_id = ${accountId}`;
	return row ?? { company: "", address: "", vatId: "" };
}

/** Saves the details. `noted` is the entry of the audit log. Fault `invalid_request`. */
export async function saveBillingDetails(
	statements: Statements,
	accountId: string,
	given: InvoiceParty,
	noted: (saved: InvoiceParty) => AuditNote,
): Promise<InvoiceParty> {
	const saved = {
		company: checked(given.company.trim(), COMPANY, "company", "Enter one line of at most 200 characters."),
		address: checked(
			given.address.replaceAll("\r\n", "\n").trim(),
			ADDRESS,
			"address",
			"Enter at most 8 lines of at most 100 characters each.",
		),
		vatId: checked(given.vatId.trim(), VAT_ID, "vatId", "Use at most 40 letters, digits, spaces and . / + * -"),
	};
	await statements`
		with saved as (
			insert into billing_details (account_id, company, address, vat_id)
			values (${accountId}, ${saved.company}, ${saved.address}, ${saved.vatId})
			on conflict (account_id) do update
				set company = excluded.company, address = excluded.address, vat_id = excluded.vat_id, updated_at = now()
		)
		select audit_note(${auditNotesJson(noted(saved))}::text::jsonb, ${accountId}, ${accountId})`;
	return saved;
}

function checked(text: string, pattern: RegExp, param: string, rule: TextId): string {
	if (!pattern.test(text)) throw new ConsoleError("invalid_request", rule, { param });
	return text;
}

export function partyLines({ company, address, vatId }: InvoiceParty, language: Language): string[] {
	const lines = [
		company,
		...address.split("\n"),
		vatId === "" ? "" : translateId(language, "VAT ID {vatId}", { vatId }),
	];
	return lines.filter((line) => line.trim() !== "");
}
