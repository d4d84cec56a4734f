import type { Statements } from "../../db/statements.ts";
import { formatUsd, nanoUsdOfColumn } from "../../money/nano-usd.ts";
import type { Mailer } from "../mail/mailer.ts";

interface Row {
	account_id: string;
	name: string;
	threshold: string;
	balance: string;
	emails: readonly string[];
}

/**
 * One mail to the owners each time an account's credit falls below its threshold. The row is disarmed in the statement
 * that finds it, so that of all instances one sends the mail; it is armed again once the credit is above the threshold.
 */
export async function sendCreditAlerts(deps: {
	readonly statements: Statements;
	readonly mailer: Pick<Mailer, "send">;
	/** Where links in mails lead. */
	readonly origin: () => string;
	readonly serviceName: string;
}): Promise<void> {
	const rows = await deps.statements<Row>`
		with seen as (
			select c.account_id, c.threshold_nano_usd as threshold, c.armed,
				b.limit_nano_usd - budget_spent(b.id) as balance
			from credit_alert c join budget b on b.id = c.account_id
		), changed as (
			update credit_alert c set armed = s.balance >= s.threshold,
				last_sent_at = case when s.balance < s.threshold then clock_timestamp() else c.last_sent_at end
			from seen s where s.account_id = c.account_id and c.armed is distinct from (s.balance >= s.threshold)
			returning c.account_id, c.armed, s.threshold, s.balance
		)
		select n.account_id, a.name, n.threshold, n.balance, (
				select coalesce(json_agg(u.email), '[]'::json) from member m join console_user u on u.id = m.user_id
				where m.account_id = n.account_id and m.role = 'owner'
			) as emails
		from changed n join account a on a.id = n.account_id where not n.armed`;
	for (const { name, threshold, balance, emails } of rows) {
		const left = formatUsd(nanoUsdOfColumn(balance));
		const link = `${deps.origin()}/credit`;
		for (const to of emails) {
			deps.mailer.send({
				to,
				subject: `Credit at ${deps.serviceName} is low`,
				text: `The credit of ${name} is USD ${left}, below the USD ${formatUsd(nanoUsdOfColumn(threshold))} that you set. Requests that it does not cover are refused.\n\nTop up: ${link}\n`,
				link,
			});
		}
	}
}
