import { t } from "elysia";
import { assert } from "../../base/assert.ts";
import type { Statements } from "../../db/statements.ts";
import { derivedHex } from "../../keys/secret.ts";
import { type AuditNote, auditNotesJson } from "../../ops/audit.ts";
import { ALERT_TYPES } from "../alerts/alerts.ts";
import { accountRoutes, type Parts } from "../console-deps.ts";
import { ConsoleError } from "../console-error.ts";
import { roleHasRight } from "../members/roles.ts";
import { TOKEN_FIELD } from "../page-claim.ts";
import type { NoticeProblem } from "./notices.ts";
import { publicUrlProblem } from "./public-request.ts";

interface NoticeView {
	/** Id of the batch, or of the event that is not about a batch. */
	readonly batchId: string;
	readonly type: string | null;
	readonly channel: "mail" | "webhook";
	readonly email: string | null;
	readonly state: "waiting" | "sent" | "failed";
	readonly attempts: number;
	readonly answer: number | null;
	readonly problem: NoticeProblem | null;
	readonly triedAtMs: number | null;
	readonly nextAtMs: number | null;
}

interface SettingRow {
	mail: "maker" | "owners" | null;
	webhook_url: string | null;
	events: readonly string[];
	salt: string | null;
}

const SHOWN_MAX = 20;
const SALT_CHARS = 32;
const EVENTS = t.Optional(t.Array(t.UnionEnum(ALERT_TYPES), { maxItems: 20, uniqueItems: true }));

export function noticeRoutes(parts: Parts<"statements" | "config" | "keyMaker" | "webhookSecretOf" | "sessions">) {
	const { statements, sessions } = parts;

	// Earlier versions of the pages use this path; a page that stays open during an upgrade still calls it.
	return accountRoutes(parts, "console-notices", "/batch-notices")
		.get("/", ({ request }) => noticesOf(parts, request))
		.put(
			"/",
			async ({ member: { accountId, noted }, request, body }) => {
				const { mail, webhookUrl, token } = body;
				const before = await settingOf(statements, accountId);
				const problem = webhookUrl == null ? undefined : publicUrlProblem(webhookUrl, parts.config.production);
				if (problem !== undefined) throw new ConsoleError("invalid_request", problem, { param: "webhookUrl" });
				const url = webhookUrl == null ? null : new URL(webhookUrl).href;
				if (url !== null && url !== before?.webhook_url) sessions.authenticatedLately(request);
				const salt = url === null ? null : saltOf(parts, request, token);
				const saved = await saveSetting(statements, accountId, {
					...{ mail: mail ?? null, keepsMail: mail === undefined },
					...{ url, salt, keepsUrl: webhookUrl === undefined },
					...{ events: body.events, added: body.eventsAdded, removed: body.eventsRemoved },
					act: noted("batch.notices"),
				});
				// False if a webhook existed before, or a concurrent request has created one.
				const isNew = salt !== null && saved.salt === salt;
				return { ...(await noticesOf(parts, request)), secret: isNew ? parts.webhookSecretOf(salt) : null };
			},
			{
				body: t.Object({
					mail: t.Optional(t.Nullable(t.Union([t.Literal("maker"), t.Literal("owners")]))),
					webhookUrl: t.Optional(t.Nullable(t.String({ maxLength: 2_000 }))),
					events: EVENTS,
					eventsAdded: EVENTS,
					eventsRemoved: EVENTS,
					token: TOKEN_FIELD,
				}),
			},
		)
		.post(
			"/secret",
			async ({ member: { accountId, noted }, request, body }) => {
				const salt = saltOf(parts, request, body.token);
				const rows = await statements`
					with saved as (
						update batch_notice_setting set webhook_salt = ${salt}
						where account_id = ${accountId} and webhook_url is not null returning account_id
					)
					select audit_note(${auditNotesJson(noted("batch.webhook_secret"))}::text::jsonb, account_id, account_id) from saved`;
				if (rows.length === 0) throw new ConsoleError("conflict", "No webhook is set up. Enter its URL first.");
				return { secret: parts.webhookSecretOf(salt) };
			},
			{ body: t.Object({ token: TOKEN_FIELD }, { additionalProperties: true }) },
		)
		.post("/:id/replay", async ({ member: { accountId, noted }, params }) => {
			const act = noted("notice.replay", { id: params.id });
			const rows = await statements`
					with again as (
						update batch_notice set state = 'waiting', attempts = 0, next_at = clock_timestamp()
						where batch_id = ${params.id} and account_id = ${accountId} and channel = 'webhook' and state <> 'waiting'
						returning account_id
					)
					select audit_note(${auditNotesJson(act)}::text::jsonb, account_id, account_id) from again limit 1`;
			if (rows.length === 0) throw new ConsoleError("not_found", "There is no finished webhook call with this ID.");
			return { replayed: true };
		});
}

/** Derives the salt from the page's token, so that a retry gets the same secret. */
function saltOf(
	{ keyMaker, sessions }: Parts<"keyMaker" | "sessions">,
	request: Request,
	token: string = crypto.randomUUID(),
): string {
	const { accountId, viewer } = sessions.account(request);
	return derivedHex(keyMaker.digest, "webhook on a page", accountId, viewer.userId, token).slice(0, SALT_CHARS);
}

interface SettingChanges {
	readonly mail: SettingRow["mail"];
	readonly keepsMail: boolean;
	readonly url: string | null;
	readonly salt: string | null;
	readonly keepsUrl: boolean;
	readonly events: readonly string[] | undefined;
	readonly added: readonly string[] | undefined;
	readonly removed: readonly string[] | undefined;
	readonly act: AuditNote;
}

/** A single statement, so that concurrent changes of different fields do not overwrite each other. */
async function saveSetting(
	statements: Statements,
	accountId: string,
	{ mail, keepsMail, url, salt, keepsUrl, ...changes }: SettingChanges,
): Promise<SettingRow> {
	const events = changes.events === undefined ? null : JSON.stringify(changes.events);
	const [added, removed] = [JSON.stringify(changes.added ?? []), JSON.stringify(changes.removed ?? [])];
	const [saved] = await statements<SettingRow>`
		with saved as (insert into batch_notice_setting as s (account_id, mail, webhook_url, webhook_salt, events)
			values (${accountId}, ${mail}, ${url}, ${salt},
				alert_events(coalesce(${events}::text::jsonb, '[]'), ${added}::text::jsonb, ${removed}::text::jsonb))
		on conflict (account_id) do update set
			mail = case when ${keepsMail}::boolean then s.mail else excluded.mail end,
			webhook_url = case when ${keepsUrl}::boolean then s.webhook_url else excluded.webhook_url end,
			webhook_salt = case when ${keepsUrl}::boolean then s.webhook_salt
				when excluded.webhook_url is not null then coalesce(s.webhook_salt, excluded.webhook_salt) end,
			events = alert_events(coalesce(${events}::text::jsonb, s.events), ${added}::text::jsonb, ${removed}::text::jsonb),
			events_at = case when s.events = alert_events(coalesce(${events}::text::jsonb, s.events), ${added}::text::jsonb, ${removed}::text::jsonb)
				then s.events_at else clock_timestamp() end
		returning account_id, mail, webhook_url, webhook_salt, events), touched as (
			insert into alert_touched (account_id) select account_id from saved)
		select mail, webhook_url, webhook_salt as salt, events, audit_note(${auditNotesJson(changes.act)}::text::jsonb, account_id, account_id,
			jsonb_build_object('mail', mail, 'events', events, 'webhook', substring(webhook_url from '//(?:[^/?#@]*@)?([^/?#]+)')))
		from saved`;
	assert(saved !== undefined, "a setting that is saved is there");
	return saved;
}

async function settingOf(statements: Statements, accountId: string): Promise<SettingRow | undefined> {
	const [row] = await statements<SettingRow>`
		select mail, webhook_url, webhook_salt as salt, events from batch_notice_setting where account_id = ${accountId}`;
	return row;
}

async function noticesOf({ statements, sessions }: Parts<"statements" | "sessions">, request: Request) {
	const { accountId, role } = sessions.account(request);
	const [setting, rows] = await Promise.all([
		settingOf(statements, accountId),
		statements<Omit<NoticeView, "triedAtMs" | "nextAtMs"> & { triedAt: Date | null; nextAt: Date }>`
			select n.batch_id as "batchId", n.type, n.channel, u.email, n.state, n.attempts, n.answer, n.problem,
				n.tried_at as "triedAt", n.next_at as "nextAt"
			from batch_notice n left join member m on m.user_id = n.user_id and m.account_id = n.account_id
				left join console_user u on u.id = m.user_id
			where n.account_id = ${accountId} order by n.created_at desc, n.batch_id desc, n.channel, n.user_id limit ${SHOWN_MAX}`,
	]);
	return {
		mail: setting?.mail ?? null,
		hasWebhook: setting?.webhook_url != null,
		/** Null unless the member is an owner or admin, because some URLs contain secrets. */
		webhookUrl: roleHasRight(role, "account.change") ? (setting?.webhook_url ?? null) : null,
		/** Subscribed events: sent to the webhook, and by mail to roles with `notices.get`. */
		events: setting?.events ?? [],
		items: rows.map(({ triedAt, nextAt, ...row }) => ({
			...row,
			triedAtMs: triedAt?.getTime() ?? null,
			nextAtMs: row.state === "waiting" ? nextAt.getTime() : null,
		})),
	};
}
