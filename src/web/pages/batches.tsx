import { Box, Progress } from "@mantine/core";
import { useState } from "react";
import { api, type BatchView } from "../api.ts";
import { ActButton, DownloadButton } from "../parts/form.tsx";
import { DetailList, Empty, ErrorMessage, LoadState, Notice, Page, Panel, State } from "../parts/page.tsx";
import { type Column, fromList, TablePanel } from "../parts/table.tsx";
import { Amount, CopyableId, RelativeTime, Timestamp, TruncatedText } from "../parts/text.tsx";
import { useAction, useList, useNow, useResource } from "../resource.ts";
import { Link, navigate } from "../router.tsx";
import { useAccount, useMay } from "../session.tsx";
import { formatAgo, formatCount, t } from "../texts.tsx";
import { useAttempt } from "../token.ts";
import { BatchStartDialog } from "./batch-start.tsx";

const TONES: Readonly<Record<BatchView["state"], "ok" | "warn" | "bad" | "off">> = {
	validating: "warn",
	in_progress: "ok",
	finalizing: "ok",
	completed: "ok",
	failed: "bad",
	expired: "off",
	cancelling: "warn",
	cancelled: "off",
};
const POLL_MS = 2_000;

const isOver = (batch: BatchView): boolean => batch.endedAtMs !== null;

function BatchState({ item }: { item: BatchView }) {
	if (item.paused !== null && !isOver(item)) return <State value="pending" label={t("Paused")} />;
	return <State value={item.state} tone={TONES[item.state]} />;
}

function BatchProgress({ item }: { item: BatchView }) {
	const { total, completed, failed } = item;
	if (total === 0) return <span className="dim">–</span>;
	const percent = Math.floor(((completed + failed) / total) * 100);
	return (
		<Box miw={90}>
			<Progress.Root
				role="progressbar"
				aria-label={t("Completed requests")}
				aria-valuemin={0}
				aria-valuemax={100}
				aria-valuenow={percent}
			>
				<Progress.Section withAria={false} value={(completed / total) * 100} />
				<Progress.Section withAria={false} value={(failed / total) * 100} color="yellow" striped />
			</Progress.Root>
			<span className="small num">
				{t("{done} of {total}", { done: formatCount(completed + failed), total: formatCount(total) })}
				{failed > 0 && t(", {count} failed", { count: formatCount(failed) })}
			</span>
		</Box>
	);
}

/** Expected end of the batch if it continues at its average speed. */
function ExpectedEnd({ item }: { item: BatchView }) {
	const now = useNow(POLL_MS);
	const done = item.completed + item.failed;
	if (isOver(item) || item.paused !== null || item.inProgressAtMs === null || done === 0 || done >= item.total)
		return <span className="dim">–</span>;
	const leftMs = ((now - item.inProgressAtMs) / done) * (item.total - done);
	return <span className="num">{formatAgo(now + leftMs, now)}</span>;
}

const COLUMNS: readonly Column<BatchView>[] = [
	{
		label: t("File"),
		lead: true,
		clip: true,
		render: (batch) => (
			<Link to={`/batches/${batch.id}`}>
				<TruncatedText text={batch.filename ?? batch.id} />
			</Link>
		),
	},
	{ label: t("State"), corner: true, render: (batch) => <BatchState item={batch} /> },
	{ label: t("Lines"), render: (batch) => <BatchProgress item={batch} /> },
	{ label: t("Estimated completion"), render: (batch) => <ExpectedEnd item={batch} /> },
	{ label: t("Key"), clip: true, render: (batch) => <TruncatedText text={batch.keyName ?? batch.keyId} /> },
	{ label: t("Started"), render: (batch) => <RelativeTime atMs={batch.createdAtMs} /> },
	{ label: t("Cost so far"), amount: (batch) => batch.chargedNanoUsd },
];

export default function BatchPages({ id }: { id: string }) {
	return id === "" ? <BatchList /> : <BatchPage id={id} />;
}

function BatchList() {
	const account = useAccount();
	const [starting, setStarting] = useState<{ readonly dropped: File | null }>();
	// Kept outside the dialog: a retry in a reopened dialog sends the same token and starts no second batch.
	const attempt = useAttempt();
	const list = useList(
		`batches ${account.id}`,
		(after) => api.batches(account.id, after),
		(data) => data?.items.some((batch) => !isOver(batch)) === true && POLL_MS,
	);
	const mayStart = useMay()("requests.send");
	const start = mayStart && (
		<ActButton label={t("Start a batch")} look="main" icon="plus" onClick={() => setStarting({ dropped: null })} />
	);

	return (
		// biome-ignore lint/a11y/noStaticElementInteractions: a file can be chosen in the dialog as well
		<div
			onDragOver={(event) => event.preventDefault()}
			onDrop={(event) => {
				event.preventDefault();
				if (mayStart) setStarting({ dropped: event.dataTransfer.files[0] ?? null });
			}}
		>
			<Page
				title={t("Batches")}
				lead={t(
					"Send many requests in one file and get the results within 24 hours. Files are stored encrypted for up to 30 days.",
				)}
				aside={start}
			>
				<TablePanel
					title={t("Batches")}
					columns={COLUMNS}
					{...fromList(list)}
					empty={
						<Empty title={t("No batches yet.")} action={start}>
							{t(
								"Upload a JSONL file with one request per line. It runs at batch rates when the models have capacity. Drop a file here to check it.",
							)}
						</Empty>
					}
				/>
				{starting && (
					<BatchStartDialog
						key={starting.dropped?.lastModified}
						dropped={starting.dropped}
						attempt={attempt}
						onClose={() => setStarting(undefined)}
						onStarted={(id) => navigate(`/batches/${id}`)}
					/>
				)}
			</Page>
		</div>
	);
}

function BatchPage({ id }: { id: string }) {
	const account = useAccount();
	const batch = useResource(
		`batch ${account.id} ${id}`,
		() => api.batch(account.id, id),
		(data) => data !== undefined && !isOver(data) && POLL_MS,
	);
	const item = batch.data;
	const maySend = useMay()("requests.send");
	const cancel = useAction(() => api.cancelBatch(account.id, id), batch.reload);
	const mayCancel = maySend && item !== undefined && !isOver(item) && item.state !== "cancelling";
	return (
		<Page
			title={item?.filename ?? t("Batch")}
			lead={<CopyableId value={id} label={t("Copy the batch's id")} />}
			aside={mayCancel && <ActButton label={t("Cancel the batch")} look="danger" action={cancel} />}
		>
			<LoadState of={batch} height={220} />
			{cancel.error && <ErrorMessage error={cancel.error} />}
			{item && <Detail item={item} />}
		</Page>
	);
}

function Detail({ item }: { item: BatchView }) {
	const account = useAccount();
	const files = useMay()("requests.send") && (
		<>
			{item.outputFileId && (
				<DownloadButton href={api.batchFileAddress(account.id, item.outputFileId)} label={t("Results")} />
			)}
			{item.errorFileId && (
				<DownloadButton href={api.batchFileAddress(account.id, item.errorFileId)} label={t("Failed requests")} />
			)}
		</>
	);
	return (
		<>
			{item.paused !== null && !isOver(item) && (
				<Notice kind="warn">{t("Paused: {why}", { why: item.paused ?? "" })}</Notice>
			)}
			<Panel
				title={t("Batch")}
				aside={
					<>
						<Link to={`/requests?batch=${item.id}`}>{t("View requests")}</Link>
						{files}
					</>
				}
			>
				<DetailList
					of={{
						[t("State")]: <BatchState item={item} />,
						[t("Lines")]: <BatchProgress item={item} />,
						[isOver(item) ? t("Cost") : t("Cost so far")]: <Amount nanoUsd={item.chargedNanoUsd} />,
						[t("Estimated completion")]: !isOver(item) && <ExpectedEnd item={item} />,
						[t("Model")]: item.model ?? "–",
						[t("Endpoint")]: item.endpoint,
						[t("Key")]: <Link to={`/keys/${item.keyId}`}>{item.keyName ?? item.keyId}</Link>,
						[t("Started")]: <Timestamp atMs={item.createdAtMs} />,
						[t("Ended")]: <Timestamp atMs={item.endedAtMs} />,
						[t("Deadline")]: <Timestamp atMs={item.expiresAtMs} />,
					}}
				/>
			</Panel>
			{item.problems.length > 0 && (
				<Panel title={t("Errors")}>
					<ul>
						{item.problems.map(({ line, message }) => (
							<li key={`${line} ${message}`}>
								{line === null ? message : t("Line {line}: {message}", { line, message })}
							</li>
						))}
					</ul>
				</Panel>
			)}
		</>
	);
}
