import { Checkbox, Group, Select, Stack, TextInput } from "@mantine/core";
import { useState } from "react";
import { type AlertType, can } from "../../console/views.ts";
import { type AccountView, api, type NoticeChanges, type Notices, type NoticeView } from "../api.ts";
import { CodeBlock } from "../parts/code.tsx";
import { ActButton, fieldError, LinkButton, PanelForm } from "../parts/form.tsx";
import { ErrorMessage, LoadState, Notice, Panel, State } from "../parts/page.tsx";
import { DataTable } from "../parts/table.tsx";
import { RelativeTime, TruncatedText } from "../parts/text.tsx";
import { useAction, useResource } from "../resource.ts";
import { Link } from "../router.tsx";
import { t } from "../texts.tsx";
import { useAttempt } from "../token.ts";

const MAILS = [
	{ value: "none", label: t("No one") },
	{ value: "maker", label: t("Creator of the batch's key") },
	{ value: "owners", label: t("Owners, admins and billing") },
];
const ALERTS: readonly { value: AlertType; label: string }[] = [
	{ value: "credit.low", label: t("Credit below the alert threshold (mails are always sent)") },
	{ value: "key.cap_reached", label: t("A key reaches 80 % and 100 % of its cap") },
	{ value: "project.cap_reached", label: t("A project reaches 80 % and 100 % of its cap") },
	{ value: "key.expiring", label: t("A key expires within a week") },
	{ value: "spend.unusual", label: t("Hourly spend is three times that of the same hour in the last four weeks") },
	{ value: "top_up.confirmed", label: t("A top-up is confirmed") },
	{ value: "auto_top_up.stopped", label: t("Automatic top-ups stop or require action (mails are always sent)") },
	{ value: "model.retiring", label: t("A model that you use retires (mails are always sent)") },
];
const asked = (events: readonly string[]) => ALERTS.map(({ value }) => value).filter((type) => events.includes(type));
const EVENT_NAMES: Readonly<Record<string, string>> = {
	"credit.low": t("Credit low"),
	"key.cap_reached": t("Cap reached"),
	"project.cap_reached": t("Project's cap reached"),
	"key.expiring": t("Key expires"),
	"spend.unusual": t("Unusual spend"),
	"top_up.confirmed": t("Top-up"),
	"auto_top_up.stopped": t("Automatic top-up stopped"),
	"model.retiring": t("Model retires"),
};
const TONES = { sent: "ok", waiting: "warn", failed: "bad" } as const;

const PROBLEMS: Readonly<Record<NonNullable<NoticeView["problem"]>, string>> = {
	address_not_public: t("the address is in a private network"),
	name_not_found: t("the host name was not found"),
	timeout: t("no answer within ten seconds"),
	no_connection: t("no connection"),
	switched_off: t("the notification was switched off"),
	no_member: t("the recipient is no longer a member"),
	mail_refused: t("the mail server refused the address"),
	mail_not_sent: t("the mail could not be sent"),
	mail_limit: t("the recipient's mail limit was reached"),
};

/** Settings of notices about batches and events, and the latest deliveries. Only owners and admins may change them. */
export function NoticesPanel({ account }: { account: AccountView }) {
	const notices = useResource(`notices ${account.id}`, () => api.notices(account.id));
	const { data } = notices;
	// Kept outside the form, because saving loads the settings and creates the form again.
	const [secret, setSecret] = useState<string>();
	return (
		<Panel title={t("Notifications")}>
			<LoadState of={notices} />
			{secret !== undefined && (
				<NewSecret
					secret={secret}
					onStored={() => {
						setSecret(undefined);
						void notices.reload();
					}}
				/>
			)}
			{data && secret === undefined && (
				<NoticesForm
					key={`${data.mail} ${data.webhookUrl} ${data.events}`}
					{...{ account, notices: data }}
					reload={notices.reload}
					onSecret={setSecret}
				/>
			)}
			{data && data.items.length > 0 && <NoticeTable {...{ account, items: data.items }} reload={notices.reload} />}
		</Panel>
	);
}

function NewSecret({ secret, onStored }: { secret: string; onStored: () => void }) {
	return (
		<Stack gap="sm">
			<Notice kind="ok">{t("Webhook saved. Copy its signing secret now: it is not shown again.")}</Notice>
			<CodeBlock code={secret} label={t("Copy the secret")} />
			<Group justify="flex-end" gap="xs">
				<ActButton size="sm" look="main" label={t("I have stored it")} onClick={onStored} />
			</Group>
		</Stack>
	);
}

function NoticesForm(props: {
	account: AccountView;
	notices: Notices;
	reload: () => Promise<void>;
	onSecret: (secret: string) => void;
}) {
	const { account, notices } = props;
	const mayChange = can(account.role, "account.change");
	const [mail, setMail] = useState(notices.mail);
	const [url, setUrl] = useState(notices.webhookUrl ?? "");
	const [events, setEvents] = useState<readonly string[]>(notices.events);
	const before = { mail: notices.mail, webhookUrl: notices.webhookUrl, events: asked(notices.events) };
	const changes = noticeChanges(before, { mail, webhookUrl: url.trim() || null, events: asked(events) });
	const [attempt, renewal] = [useAttempt(), useAttempt()];
	const save = useAction(async () => {
		const saved = await attempt.send(changes, (token) => api.setNotices(account.id, changes, token));
		if (saved.secret !== null) return props.onSecret(saved.secret);
		await props.reload();
	});
	const renew = useAction(async () =>
		props.onSecret((await renewal.send({}, (token) => api.newWebhookSecret(account.id, token))).secret),
	);
	return (
		<PanelForm
			action={save}
			act={t("Save")}
			disabled={Object.keys(changes).length === 0}
			error={save.error ?? renew.error}
			fields={["webhookUrl"]}
			denied={!mayChange && t("Only owners and admins can change this.")}
			more={notices.hasWebhook && <ActButton size="sm" label={t("New secret")} action={renew} />}
		>
			<Select
				label={t("Mail when a batch ends")}
				data={MAILS}
				value={mail ?? "none"}
				allowDeselect={false}
				disabled={!mayChange}
				onChange={(value) => setMail(value === "maker" || value === "owners" ? value : null)}
			/>
			<TextInput
				label={t("Webhook")}
				description={t(
					"Receives an event when a batch ends and for the events below, signed by the Standard Webhooks specification.",
				)}
				placeholder={
					mayChange || !notices.hasWebhook
						? "https://example.com/batches"
						: t("Set. Only owners and admins see its URL")
				}
				type="url"
				maxLength={2_000}
				disabled={!mayChange}
				value={url}
				error={fieldError(save, "webhookUrl")}
				onChange={(event) => setUrl(event.currentTarget.value)}
			/>
			<Checkbox.Group
				label={t("Events")}
				description={t("By mail to owners, admins and billing, and to the webhook")}
				value={[...events]}
				onChange={setEvents}
			>
				{ALERTS.map(({ value, label }) => (
					<Checkbox key={value} mt={6} value={value} label={label} disabled={!mayChange} />
				))}
			</Checkbox.Group>
		</PanelForm>
	);
}

function NoticeTable(props: { account: AccountView; items: readonly NoticeView[]; reload: () => Promise<void> }) {
	const mayReplay = can(props.account.role, "account.change");
	const replay = useAction((id: string) => api.replayNotice(props.account.id, id), props.reload);
	return (
		<>
			{replay.error && <ErrorMessage error={replay.error} />}
			<DataTable
				label={t("Recent notifications")}
				rows={props.items}
				rowKey={(item) => `${item.batchId} ${item.channel} ${item.email}`}
				columns={[
					{
						label: t("Description"),
						lead: true,
						render: (item) =>
							item.type !== null ? (
								(EVENT_NAMES[item.type] ?? item.type)
							) : (
								// Shows the end of the id: ids begin with their time, so all ids of a day look alike at the start.
								<Link to={`/batches/${item.batchId}`} title={item.batchId}>
									…{item.batchId.slice(-12)}
								</Link>
							),
					},
					{
						label: t("Recipient"),
						clip: true,
						render: (item) => (
							<TruncatedText text={item.channel === "webhook" ? t("Webhook") : (item.email ?? t("A former member"))} />
						),
					},
					{ label: t("State"), corner: true, render: (item) => <State value={item.state} tone={TONES[item.state]} /> },
					{ label: t("Response"), render: (item) => answerOf(item) },
					{ label: t("Attempts"), figure: (item) => item.attempts },
					{ label: t("Last attempt"), render: (item) => <RelativeTime atMs={item.triedAtMs} never="–" /> },
					{ label: t("Next attempt"), render: (item) => <RelativeTime atMs={item.nextAtMs} never="–" /> },
				]}
				act={(item) =>
					mayReplay &&
					item.channel === "webhook" &&
					item.state !== "waiting" && (
						<LinkButton onClick={() => void replay.run(item.batchId)}>{t("Send again")}</LinkButton>
					)
				}
			/>
		</>
	);
}

function answerOf({ answer, problem, channel, state }: NoticeView): string {
	if (problem !== null) return PROBLEMS[problem];
	if (answer !== null) return `HTTP ${answer}`;
	return channel === "mail" && state === "sent" ? t("accepted") : "–";
}

export interface NoticeForm {
	readonly mail: "maker" | "owners" | null;
	readonly webhookUrl: string | null;
	readonly events: readonly AlertType[];
}

/** Returns only changed fields, so that changes of other fields in another tab are kept. */
export function noticeChanges(before: NoticeForm, wanted: NoticeForm): NoticeChanges {
	const { mail, webhookUrl, events } = wanted;
	const added = events.filter((type) => !before.events.includes(type));
	const removed = before.events.filter((type) => !events.includes(type));
	return {
		...(mail === before.mail ? {} : { mail }),
		...(webhookUrl === before.webhookUrl ? {} : { webhookUrl }),
		...(added.length === 0 ? {} : { eventsAdded: added }),
		...(removed.length === 0 ? {} : { eventsRemoved: removed }),
	};
}
