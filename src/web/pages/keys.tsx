import { Select } from "@mantine/core";
import { useState } from "react";
import { api, type KeyView } from "../api.ts";
import { canSend, isProjectArchived } from "../key-use.ts";
import { KEY_COLUMN } from "../parts/account-tables.tsx";
import { CapBar } from "../parts/cap-bar.tsx";
import { ActDialog, EndDialog } from "../parts/dialog.tsx";
import { SearchField } from "../parts/fields.tsx";
import { ActButton } from "../parts/form.tsx";
import { DetailList, Empty, LoadState, Page, Panel, State } from "../parts/page.tsx";
import { RequestTable } from "../parts/request-table.tsx";
import { type Column, fromItems, fromList, TablePanel } from "../parts/table.tsx";
import { Amount, CopyableId, RelativeTime, Timestamp } from "../parts/text.tsx";
import { UsageChart } from "../parts/usage-chart.tsx";
import { useAction, useList, useResource } from "../resource.ts";
import { Link, navigate, useCreateDialog } from "../router.tsx";
import { useAccount, useMay } from "../session.tsx";
import ToolChoice from "../snippets/tool-choice.tsx";
import { formatCount, plural, rich, t } from "../texts.tsx";
import { newToken } from "../token.ts";
import { KeyCreateDialog, SecretDialog } from "./key-create.tsx";
import { SettingsDialog, useProjectChoice } from "./key-form.tsx";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

export default function KeyPages({ id }: { id: string }) {
	return id === "" ? <KeyList /> : <KeyPage id={id} />;
}

function KeyPage({ id }: { id: string }) {
	const account = useAccount();
	const may = useMay();
	const key = useResource(`key ${account.id} ${id}`, () => api.key(account.id, id));
	const [dialog, setDialog] = useState<"edit" | "rotate" | "revoke">();
	const projects = useProjectChoice(dialog === "edit" && may("projects.change"));
	const item = key.data;
	const close = () => {
		setDialog(undefined);
		void key.reload();
	};

	return (
		<Page
			title={item?.name ?? t("Key")}
			aside={
				item?.state === "active" &&
				may("keys.change") && (
					<>
						<ActButton label={t("Edit")} onClick={() => setDialog("edit")} />
						<ActButton label={t("Rotate")} onClick={() => setDialog("rotate")} />
						<ActButton label={t("Revoke")} look="danger" onClick={() => setDialog("revoke")} />
					</>
				)
			}
		>
			<LoadState of={key} height={220} />
			{item && (
				<>
					<KeyFacts item={item} />
					{canSend(item) && (
						<Panel title={t("Quick start")}>
							<ToolChoice apiKey={`${item.prefix}…${item.lastFour}`} models={item.models} />
						</Panel>
					)}
					<KeyUsage item={item} />
					{dialog === "edit" && (
						<SettingsDialog
							title={t("Edit the key")}
							item={item}
							fields={{ readsOnly: item.readsOnly, projects }}
							onSave={(changes) => api.editKey(account.id, id, changes)}
							onClose={close}
						/>
					)}
					{dialog === "rotate" && <RotateDialog item={item} onClose={close} />}
					{dialog === "revoke" && <RevokeDialog item={item} onClose={close} />}
				</>
			)}
		</Page>
	);
}

function KeyFacts({ item }: { item: KeyView }) {
	return (
		<Panel title={t("Key")}>
			<DetailList
				of={{
					[t("State")]: <KeyState item={item} />,
					[t("Secret")]: <code>{`${item.prefix}…${item.lastFour}`}</code>,
					[t("Id")]: <CopyableId value={item.id} label={t("Copy the key's id")} />,
					[t("Use")]: item.readsOnly && t("Read-only: usage and credit"),
					[t("Project")]: item.projectId && (
						<Link to={`/projects/${item.projectId}`}>{item.projectName ?? item.projectId}</Link>
					),
					[t("Cap")]: <CapBar item={item} />,
					[t("Total spent")]: <Amount nanoUsd={item.spentNanoUsd} />,
					[t("Models")]: item.models.join(", ") || t("All available models"),
					[t("Limits")]: limitsText(item),
					[t("Created")]: <Timestamp atMs={item.createdAtMs} />,
					[t("Last used")]: <RelativeTime atMs={item.lastUsedAtMs} />,
					[t("Expires")]: item.expiresAtMs === null ? t("Never") : <Timestamp atMs={item.expiresAtMs} />,
					[t("Revoked")]: item.revokedAtMs !== null && <Timestamp atMs={item.revokedAtMs} />,
					[t("Replaced by")]: item.replacedBy && <Link to={`/keys/${item.replacedBy}`}>{item.replacedBy}</Link>,
				}}
			/>
		</Panel>
	);
}

export function limitsText(item: Pick<KeyView, "requestsPerMinute" | "concurrencyMax" | "tokensPerMinute">): string {
	const parts = [
		item.requestsPerMinute !== null && t("{count} requests per minute", { count: formatCount(item.requestsPerMinute) }),
		item.concurrencyMax !== null && t("{count} concurrent", { count: formatCount(item.concurrencyMax) }),
		item.tokensPerMinute !== null && t("{count} tokens per minute", { count: formatCount(item.tokensPerMinute) }),
	].filter((part) => part !== false);
	return parts.length === 0 ? t("Service defaults") : parts.join(", ");
}

function KeyUsage({ item }: { item: KeyView }) {
	const account = useAccount();
	const usage = useResource(`key-usage ${account.id} ${item.id}`, () =>
		api.usage(account.id, {
			from: Date.now() - 30 * DAY_MS,
			to: Date.now(),
			bucket: "day",
			group: "model",
			key: item.id,
		}),
	);
	const requests = useResource(`key-requests ${account.id} ${item.id}`, () =>
		api.requests(account.id, { key: item.id }, { limit: 10 }),
	);
	return (
		<>
			<Panel
				title={t("Spend, last 30 days")}
				aside={<Link to={`/usage?key=${item.id}`}>{t("Usage of this key")}</Link>}
			>
				<LoadState of={usage} />
				{usage.error && !usage.data ? null : usage.data?.total.requests === 0 ? (
					<Empty title={t("Not used in the last 30 days.")} />
				) : (
					<UsageChart series={usage.data} measure="cost" label={t("Spend of this key by day and model")} />
				)}
			</Panel>
			<Panel
				title={t("Recent requests")}
				aside={<Link to={`/requests?key=${item.id}`}>{t("All requests of this key")}</Link>}
				flush
			>
				<RequestTable
					{...fromItems(requests)}
					empty={
						<Empty title={t("No requests yet.")}>{t("Requests made with this key appear here when they end.")}</Empty>
					}
				/>
			</Panel>
		</>
	);
}

function RevokeDialog({ item, onClose }: { item: KeyView; onClose: () => void }) {
	const account = useAccount();
	return (
		<EndDialog
			title={t("Revoke the key")}
			name={item.name}
			label={t("Type the key's name: {name}", { name: item.name })}
			act={t("Revoke")}
			run={() => api.revokeKey(account.id, item.id)}
			done={t("No instance accepts this key")}
			below={({ runningRequests }) => <p>{runningText(runningRequests)}</p>}
			onClose={onClose}
		>
			{rich(
				"Applications that use {name} stop working immediately. This cannot be undone. Running requests finish and are charged.",
				{ name: <strong>{item.name}</strong> },
			)}
		</EndDialog>
	);
}

function runningText(count: number): string {
	if (count === 0) return t("No request was running with this key.");
	return plural(
		count,
		{ one: "{count} admitted request is finishing.", other: "{count} admitted requests are finishing." },
		{ count: formatCount(count) },
	);
}

const GRACES = [
	{ value: "0", label: t("Expire immediately") },
	{ value: String(HOUR_MS), label: t("1 hour") },
	{ value: String(DAY_MS), label: t("1 day") },
	{ value: String(7 * DAY_MS), label: t("7 days") },
];

/** Dialog that replaces a key by a new one with the same settings. The old key works for a grace period. */
function RotateDialog({ item, onClose }: { item: KeyView; onClose: () => void }) {
	const account = useAccount();
	const [grace, setGrace] = useState(String(DAY_MS));
	const [made, setMade] = useState<{ id: string; secret: string }>();
	// A retry after a lost response sends this token again and gets the same secret.
	const [token] = useState(newToken);
	const rotate = useAction(async () => {
		const { key, secret } = await api.rotateKey(account.id, item.id, Number(grace), token);
		setMade({ id: key.id, secret });
	});
	if (made)
		return (
			<SecretDialog
				secret={made.secret}
				title={t("Replacement created")}
				onStored={() => {
					onClose();
					navigate(`/keys/${made.id}`);
				}}
			>
				{!item.readsOnly && <ToolChoice apiKey={made.secret} models={item.models} />}
			</SecretDialog>
		);
	return (
		<ActDialog
			onClose={onClose}
			title={t("Rotate the key")}
			held={rotate.busy}
			action={rotate}
			act={t("Create the replacement")}
		>
			<p>
				{rich(
					"Creates a new key with the settings of {name}. Switch your application to it before the old key expires.",
					{ name: <strong>{item.name}</strong> },
				)}
			</p>
			<Select
				label={t("Keep the old key for")}
				data={GRACES}
				value={grace}
				allowDeselect={false}
				onChange={(value) => setGrace(value ?? "0")}
			/>
		</ActDialog>
	);
}

export const KEY_COLUMNS: readonly Column<KeyView>[] = [
	{ label: t("Name"), lead: true, render: (key) => <Link to={`/keys/${key.id}`}>{key.name}</Link> },
	KEY_COLUMN,
	{ label: t("State"), corner: true, render: (key) => <KeyState item={key} /> },
	{ label: t("Project"), clip: true, render: (key) => key.projectName ?? "–" },
	{ label: t("Models"), render: (key) => (key.models.length === 0 ? t("All") : formatCount(key.models.length)) },
	{ label: t("Last used"), render: (key) => <RelativeTime atMs={key.lastUsedAtMs} /> },
	{ label: t("Cap"), render: (key) => <CapBar item={key} small /> },
	{ label: t("Spent"), amount: (key) => key.spentNanoUsd },
];

export function KeyState({ item }: { item: KeyView }) {
	if (item.state === "active" && item.replacedBy) return <State value="draining" label={t("Being replaced")} />;
	return <State value={isProjectArchived(item) ? "archived" : item.state} />;
}

function KeyList() {
	const account = useAccount();
	const may = useMay();
	const [isOpen, setOpen] = useCreateDialog();
	const [search, setSearch] = useState("");
	const list = useList(`keys ${account.id}`, (after) => api.keys(account.id, after));
	const wanted = search.trim().toLowerCase();
	const shown = list.items?.filter((key) => `${key.name} ${key.prefix} ${key.lastFour}`.toLowerCase().includes(wanted));
	const create = may("keys.change") && (
		<ActButton label={t("Create a key")} look="main" icon="plus" onClick={() => setOpen(true)} />
	);

	return (
		<Page title={t("Keys")} lead={t("Use one key per application and environment.")} aside={create}>
			<TablePanel
				title={t("API keys")}
				aside={<SearchField label={t("Search keys")} value={search} onChange={setSearch} />}
				columns={KEY_COLUMNS}
				{...fromList({ ...list, items: shown })}
				empty={
					wanted === "" ? (
						<Empty title={t("No keys yet.")} action={create}>
							{t(
								"Applications call the service with a key. A key can have a spending cap and a list of allowed models.",
							)}
						</Empty>
					) : (
						<Empty title={t("No key matches “{search}”.", { search: search.trim() })} />
					)
				}
			/>
			<KeyCreateDialog
				open={isOpen && may("keys.change")}
				onClose={() => setOpen(false)}
				onCreated={() => void list.reload()}
			/>
		</Page>
	);
}
