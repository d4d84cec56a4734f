import { FileInput, Select } from "@mantine/core";
import { useEffect, useState } from "react";
import { api } from "../api.ts";
import { canSend } from "../key-use.ts";
import { keyLabel } from "../labels.ts";
import { ActDialog } from "../parts/dialog.tsx";
import { Notice } from "../parts/page.tsx";
import { useAction, useResource } from "../resource.ts";
import { useAccount } from "../session.tsx";
import { formatCount, plural, rich, t } from "../texts.tsx";
import type { RepeatableSend } from "../token.ts";

const FILE_BYTES_MAX = 32 * 1024 * 1024;

interface BatchFile {
	readonly lines: number;
	/** Endpoint in the file's first line. All lines of a batch must use the same endpoint. */
	readonly endpoint: string;
}

/** Reads the file's first line; undefined if it is not a request. The service checks the other lines. */
async function readBatch(file: File): Promise<BatchFile | undefined> {
	try {
		const lines = (await file.text()).split("\n").filter((line) => line.trim() !== "");
		const { url } = JSON.parse(lines[0] ?? "") as { url?: unknown };
		return typeof url === "string" ? { lines: lines.length, endpoint: url } : undefined;
	} catch {
		return undefined;
	}
}

/** Dialog that shows what the file contains, before it is uploaded and charged to a key. */
export function BatchStartDialog(props: {
	dropped: File | null;
	attempt: RepeatableSend;
	onClose: () => void;
	onStarted: (id: string) => void;
}) {
	const account = useAccount();
	const keys = useResource(`keys ${account.id}`, () => api.keys(account.id));
	const [file, setFile] = useState(props.dropped);
	const [check, setCheck] = useState<BatchFile | null>();
	const [chosen, setChosen] = useState<string | null>(null);
	const usable = keys.data?.items.filter(canSend) ?? [];
	const keyId = chosen ?? usable[0]?.id ?? null;
	const start = useAction(async () => {
		if (file === null || keyId === null || !check) return;
		const asked = { key: keyId, endpoint: check.endpoint, file };
		// The token depends on file and key, so that repeated clicks start one batch.
		const { name, size, lastModified } = file;
		const begun = await props.attempt.send({ ...asked, file: [name, size, lastModified] }, (token) =>
			api.startBatch(account.id, { ...asked, token }),
		);
		props.onStarted(begun.id);
	});

	const isTooLarge = file !== null && file.size > FILE_BYTES_MAX;
	useEffect(() => {
		setCheck(undefined);
		if (file === null || isTooLarge) return;
		// Prevents a slow read from replacing the content of a file that was chosen later.
		let isShown = true;
		void readBatch(file).then((found) => isShown && setCheck(found ?? null));
		return () => {
			isShown = false;
		};
	}, [file, isTooLarge]);
	const isReady = check && keyId !== null;
	return (
		<ActDialog
			onClose={props.onClose}
			title={t("Start a batch")}
			action={start}
			act={t("Start")}
			onSubmit={() => {
				if (isReady) void start.run();
			}}
			disabled={!isReady}
		>
			<FileInput
				label={t("Batch file")}
				description={t("JSONL with one request per line: custom_id, method, url and body.")}
				placeholder={t("Choose a .jsonl file")}
				accept=".jsonl,.ndjson,.json,.txt"
				value={file}
				onChange={setFile}
			/>
			{isTooLarge && (
				<Notice kind="warn">
					{rich("Upload files larger than 32 MB with an SDK or with {code}.", {
						code: <code>tollgate batch run</code>,
					})}
				</Notice>
			)}
			{check === null && (
				<Notice kind="warn">
					{t("The file cannot be read: its first line must be JSON with custom_id, method, url and body.")}
				</Notice>
			)}
			{check && (
				<Notice kind="ok">
					{plural(
						check.lines,
						{ one: "{count} request to {endpoint}", other: "{count} requests to {endpoint}" },
						{ count: formatCount(check.lines), endpoint: check.endpoint },
					)}
				</Notice>
			)}
			<Select
				label={t("Key")}
				description={t("Its cap and allowed models apply to every request.")}
				data={usable.map((key) => ({ value: key.id, label: keyLabel(key) }))}
				allowDeselect={false}
				value={keyId}
				onChange={setChosen}
			/>
		</ActDialog>
	);
}
