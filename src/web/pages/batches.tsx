import { Button } from "@mantine/core";
import { useState } from "react";
import { api } from "../api.ts";
import { Icon } from "../parts/icons.tsx";
import { Page, Panel } from "../parts/page.tsx";
import { Empty } from "../parts/problem.tsx";
import { type Column, DataTable, fromList } from "../parts/table.tsx";
import { Ago, Clipped } from "../parts/text.tsx";
import { useList } from "../resource.ts";
import { Link, navigate } from "../router.tsx";
import { useAccount, useMay } from "../session.tsx";
import { t } from "../texts.tsx";
import { useAttempt } from "../token.ts";
import type { BatchView } from "../views.ts";
import { BatchProgress, BatchState, ExpectedEnd, isOver, useProgress } from "./batch-progress.tsx";
import { BatchStartDialog } from "./batch-start.tsx";

const COLUMNS: readonly Column<BatchView>[] = [
	{
		label: t("File"),
		lead: true,
		clip: true,
		render: (batch) => (
			<Link to={`/batches/${batch.id}`}>
				<Clipped text={batch.filename ?? batch.id} />
			</Link>
		),
	},
	{ label: t("State"), corner: true, render: (batch) => <BatchState item={batch} /> },
	{ label: t("Lines"), render: (batch) => <BatchProgress item={batch} /> },
	{ label: t("Expected end"), render: (batch) => <ExpectedEnd item={batch} /> },
	{ label: t("Key"), clip: true, render: (batch) => <Clipped text={batch.keyName ?? batch.keyId} /> },
	{ label: t("Started"), render: (batch) => <Ago atMs={batch.createdAtMs} /> },
	{ label: t("Cost so far"), amount: (batch) => batch.chargedNanoUsd },
];

export default function BatchesPage() {
	const account = useAccount();
	const [starting, setStarting] = useState<{ dropped: File | null }>();
	// Outlives the dialog: a retry after a lost answer and a cancelled dialog does not start a second batch.
	const attempt = useAttempt();
	const list = useList(`batches ${account.id}`, (after) => api.batches(account.id, after));
	useProgress(list.items?.some((batch) => !isOver(batch)) ?? false, list.reload);
	const mayStart = useMay()("requests.send");
	const start = mayStart && (
		<Button size="xs" leftSection={<Icon name="plus" />} onClick={() => setStarting({ dropped: null })}>
			{t("Start a batch")}
		</Button>
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
					"Many requests in one file, done within a day. Its lines and their answers are kept: encrypted, for 30 days at most.",
				)}
				aside={start}
			>
				<Panel flush title={t("Batches")}>
					<DataTable
						label={t("Batches")}
						columns={COLUMNS}
						{...fromList(list)}
						rowKey={(batch) => batch.id}
						empty={
							<Empty title={t("No batches yet.")} action={start}>
								{t(
									"A file with a request on each line is worked through when the models have room, at their batch rates. Drop one here to check it.",
								)}
							</Empty>
						}
					/>
				</Panel>
				{starting && (
					<BatchStartDialog
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
