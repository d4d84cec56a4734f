import { Button, Skeleton } from "@mantine/core";
import { api } from "../api.ts";
import { Icon } from "../parts/icons.tsx";
import { Facts, Page, Panel } from "../parts/page.tsx";
import { Empty, Notice, Problem, Reading } from "../parts/problem.tsx";
import { Amount, Id, Moment } from "../parts/text.tsx";
import { useAction, useResource } from "../resource.ts";
import { Link } from "../router.tsx";
import { useAccount, useMay } from "../session.tsx";
import { t } from "../texts.tsx";
import type { BatchView } from "../views.ts";
import { BatchProgress, BatchState, ExpectedEnd, isOver, useProgress } from "./batch-progress.tsx";

export default function BatchPage({ id }: { id: string }) {
	const account = useAccount();
	const batch = useResource(`batch ${account.id} ${id}`, () => api.batch(account.id, id));
	const item = batch.data;
	const maySend = useMay()("requests.send");
	useProgress(item !== undefined && !isOver(item), batch.reload);
	const cancel = useAction(async () => {
		await api.cancelBatch(account.id, id);
		await batch.reload();
	});
	if (batch.error?.status === 404) {
		return (
			<Page title={t("Batch")}>
				<Empty
					title={t("There is no such batch in this account.")}
					action={<Link to="/batches">{t("All batches")}</Link>}
				/>
			</Page>
		);
	}
	const mayCancel = maySend && item !== undefined && !isOver(item) && item.state !== "cancelling";
	return (
		<Page
			title={item?.filename ?? t("Batch")}
			lead={<Id value={id} label={t("Copy the batch's id")} />}
			aside={
				mayCancel && (
					<Button size="xs" variant="light" color="red" loading={cancel.busy} onClick={() => void cancel.run()}>
						{t("Cancel the rest")}
					</Button>
				)
			}
		>
			<Reading of={batch} />
			{cancel.error && <Problem error={cancel.error} />}
			{!item && !batch.error && <Skeleton height={220} />}
			{item && <Detail item={item} />}
		</Page>
	);
}

function Detail({ item }: { item: BatchView }) {
	const account = useAccount();
	const maySend = useMay()("requests.send");
	const download = (file: string, label: string) => (
		<Button
			component="a"
			href={api.batchFileAddress(account.id, file)}
			download
			size="xs"
			variant="default"
			leftSection={<Icon name="download" />}
		>
			{label}
		</Button>
	);
	const files = maySend && (
		<>
			{item.outputFileId && download(item.outputFileId, t("Answers"))}
			{item.errorFileId && download(item.errorFileId, t("What failed"))}
		</>
	);
	return (
		<>
			{item.paused !== null && !isOver(item) && (
				<Notice kind="warn">{t("It is paused: {why}", { why: item.paused ?? "" })}</Notice>
			)}
			<Panel
				title={t("Batch")}
				aside={
					<>
						<Link to={`/requests?batch=${item.id}`}>{t("Its requests")}</Link>
						{files}
					</>
				}
			>
				<Facts
					items={[
						[t("State"), <BatchState key="state" item={item} />],
						[t("Lines"), <BatchProgress key="lines" item={item} />],
						[isOver(item) ? t("Cost") : t("Cost so far"), <Amount key="cost" nanoUsd={item.chargedNanoUsd} />],
						...(isOver(item) ? [] : [[t("Expected end"), <ExpectedEnd key="end" item={item} />] as const]),
						[t("Model"), item.model ?? "–"],
						[t("Endpoint"), item.endpoint],
						[
							t("Key"),
							<Link key="key" to={`/keys/${item.keyId}`}>
								{item.keyName ?? item.keyId}
							</Link>,
						],
						[t("Started"), <Moment key="started" atMs={item.createdAtMs} />],
						[t("Ended"), <Moment key="ended" atMs={item.endedAtMs} />],
						[t("Window ends"), <Moment key="window" atMs={item.expiresAtMs} />],
					]}
				/>
			</Panel>
			{item.problems.length > 0 && (
				<Panel title={t("What is wrong")}>
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
