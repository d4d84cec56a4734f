import { Button } from "@mantine/core";
import { useState } from "react";
import { api } from "../api.ts";
import { formatCount } from "../format.ts";
import { canAsk } from "../key-use.ts";
import { CapBar } from "../parts/cap-bar.tsx";
import { EndDialog } from "../parts/dialog.tsx";
import { Facts, Page, Panel } from "../parts/page.tsx";
import { Empty, Reading } from "../parts/problem.tsx";
import { RequestTable } from "../parts/request-table.tsx";
import { fromItems } from "../parts/table.tsx";
import { Ago, Amount, Id, Moment } from "../parts/text.tsx";
import { UsageChart } from "../parts/usage-chart.tsx";
import { useResource } from "../resource.ts";
import { Link } from "../router.tsx";
import { useAccount, useMay } from "../session.tsx";
import ToolChoice from "../snippets/tool-choice.tsx";
import { plural, rich, t } from "../texts.tsx";
import type { KeyView } from "../views.ts";
import { SettingsDialog, useProjectChoice } from "./key-form.tsx";
import { RotateDialog } from "./key-rotate.tsx";
import { KeyState } from "./keys.tsx";

const DAY_MS = 86_400_000;

export default function KeyPage({ id }: { id: string }) {
	const account = useAccount();
	const may = useMay();
	const key = useResource(`key ${account.id} ${id}`, () => api.key(account.id, id));
	const [dialog, setDialog] = useState<"edit" | "rotate" | "revoke">();
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
						<Button size="xs" variant="default" onClick={() => setDialog("edit")}>
							{t("Edit")}
						</Button>
						<Button size="xs" variant="default" onClick={() => setDialog("rotate")}>
							{t("Rotate")}
						</Button>
						<Button size="xs" variant="light" color="red" onClick={() => setDialog("revoke")}>
							{t("Revoke")}
						</Button>
					</>
				)
			}
		>
			<Reading of={key} height={220} />
			{item && (
				<>
					<KeyFacts item={item} />
					{canAsk(item) && (
						<Panel title={t("Use it")}>
							<ToolChoice apiKey={`${item.prefix}…${item.lastFour}`} models={item.models} />
						</Panel>
					)}
					<KeyUsage item={item} />
					{dialog === "edit" && <EditDialog item={item} onClose={close} />}
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
			<Facts
				of={{
					[t("State")]: <KeyState item={item} />,
					[t("Secret")]: <code>{`${item.prefix}…${item.lastFour}`}</code>,
					[t("Id")]: <Id value={item.id} label={t("Copy the key's id")} />,
					[t("Use")]: item.readsOnly && t("Only reads usage and credit"),
					[t("Project")]: item.projectId && (
						<Link to={`/projects/${item.projectId}`}>{item.projectName ?? item.projectId}</Link>
					),
					[t("Cap")]: <CapBar item={item} />,
					[t("Spent in all")]: <Amount nanoUsd={item.spentNanoUsd} />,
					[t("Models")]: item.models.join(", ") || t("All available models"),
					[t("Limits")]: limitsText(item),
					[t("Created")]: <Moment atMs={item.createdAtMs} />,
					[t("Last used")]: <Ago atMs={item.lastUsedAtMs} />,
					[t("Expires")]: item.expiresAtMs === null ? t("Never") : <Moment atMs={item.expiresAtMs} />,
					[t("Revoked")]: item.revokedAtMs !== null && <Moment atMs={item.revokedAtMs} />,
					[t("Replaced by")]: item.replacedBy && <Link to={`/keys/${item.replacedBy}`}>{item.replacedBy}</Link>,
				}}
			/>
		</Panel>
	);
}

export function limitsText(item: Pick<KeyView, "requestsPerMinute" | "concurrencyMax">): string {
	const parts = [
		item.requestsPerMinute === null
			? undefined
			: t("{count} requests a minute", { count: formatCount(item.requestsPerMinute) }),
		item.concurrencyMax === null ? undefined : t("{count} at a time", { count: formatCount(item.concurrencyMax) }),
	].filter((part) => part !== undefined);
	return parts.length === 0 ? t("Those of the service") : parts.join(", ");
}

function KeyUsage({ item }: { item: KeyView }) {
	const account = useAccount();
	const usage = useResource(`key-usage ${account.id} ${item.id}`, () =>
		api.usage(account.id, {
			from: Date.now() - 30 * DAY_MS,
			to: Date.now(),
			bucket: "day",
			group: "model",
			model: null,
			key: item.id,
			status: null,
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
				<Reading of={usage} />
				{usage.error && !usage.data ? null : usage.data?.total.requests === 0 ? (
					<Empty title={t("Not used in the last 30 days.")} />
				) : (
					<UsageChart
						series={usage.data}
						measure="cost"
						groupedBy={t("Model")}
						label={t("Spend of this key by day and model")}
					/>
				)}
			</Panel>
			<Panel
				title={t("Newest requests")}
				aside={<Link to={`/requests?key=${item.id}`}>{t("All of this key")}</Link>}
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

function EditDialog({ item, onClose }: { item: KeyView; onClose: () => void }) {
	const account = useAccount();
	const may = useMay();
	const projects = useProjectChoice(may("projects.change"));
	return (
		<SettingsDialog
			title={t("Edit the key")}
			item={item}
			fields={{ readsOnly: item.readsOnly, projects }}
			onSave={(changes) => api.editKey(account.id, item.id, changes)}
			onClose={onClose}
		/>
	);
}

/** Revoking is final. */
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
				"Every application that uses {name} is refused from now on. This cannot be undone. Requests that are already admitted finish and are charged.",
				{ name: <strong>{item.name}</strong> },
			)}
		</EndDialog>
	);
}

function runningText(count: number): string {
	if (count === 0) return t("No request was running under it.");
	return plural(
		count,
		{ one: "{count} admitted request is finishing.", other: "{count} admitted requests are finishing." },
		{ count: formatCount(count) },
	);
}
