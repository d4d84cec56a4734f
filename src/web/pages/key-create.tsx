import { Group, Stack } from "@mantine/core";
import { type ReactNode, useState } from "react";
import { api, type KeyView } from "../api.ts";
import { CodeBlock } from "../parts/code.tsx";
import { ActDialog, Dialog } from "../parts/dialog.tsx";
import { CheckField } from "../parts/fields.tsx";
import { ActButton } from "../parts/form.tsx";
import { CopyButton } from "../parts/text.tsx";
import { useAction } from "../resource.ts";
import { useAccount } from "../session.tsx";
import { KEY_VARIABLE } from "../snippets/chat.ts";
import ToolChoice from "../snippets/tool-choice.tsx";
import { rich, t } from "../texts.tsx";
import { useAttempt } from "../token.ts";
import { EMPTY_DRAFT, KeyFields, settingsOf, useProjectChoice } from "./key-form.tsx";

export function KeyCreateDialog(props: {
	open: boolean;
	onClose: () => void;
	onCreated: () => void;
	projectId?: string;
}) {
	const account = useAccount();
	const [empty] = useState({ ...EMPTY_DRAFT, projectId: props.projectId ?? "" });
	const [draft, setDraft] = useState(empty);
	const projects = useProjectChoice(props.open);
	const [readsOnly, setReadsOnly] = useState(false);
	const [made, setMade] = useState<{ key: KeyView; secret: string }>();
	const attempt = useAttempt();
	const create = useAction(async () => {
		const input = {
			...settingsOf(readsOnly ? { ...empty, name: draft.name, expires: draft.expires } : draft, "create"),
			...(readsOnly ? { readsOnly } : {}),
		};
		setMade(await attempt.send(input, (token) => api.createKey(account.id, input, token)));
		props.onCreated();
	});

	function close() {
		setMade(undefined);
		setDraft(empty);
		setReadsOnly(false);
		create.clear();
		props.onClose();
	}

	if (made)
		return (
			<SecretDialog secret={made.secret} title={t("Key created")} onStored={close}>
				{!made.key.readsOnly && <ToolChoice apiKey={made.secret} models={made.key.models} />}
			</SecretDialog>
		);
	return (
		<ActDialog
			opened={props.open}
			onClose={close}
			title={t("Create a key")}
			closeOnClickOutside={draft === empty}
			held={create.busy}
			action={create}
			act={t("Create")}
		>
			<KeyFields draft={draft} onChange={setDraft} error={create.error} readsOnly={readsOnly} projects={projects} />
			<CheckField
				label={t("Read-only: usage and credit")}
				description={t("For dashboards: GET /v1/usage, /v1/credits and /v1/models. The key cannot call models.")}
				checked={readsOnly}
				onChange={setReadsOnly}
			/>
		</ActDialog>
	);
}

/**
 * Shows a secret. The dialog closes only after the user confirms that the secret is stored: Escape, clicks outside and
 * the back button have no effect.
 */
export function SecretDialog(props: {
	secret: string;
	title: string;
	variable?: string;
	children?: ReactNode;
	onStored: () => void;
}) {
	const [stored, setStored] = useState(false);
	return (
		<Dialog onClose={() => undefined} title={props.title} size="lg" withCloseButton={false} held>
			<Stack gap={14}>
				<p>
					{rich("<strong>Copy the secret now: it is not shown again.</strong> The service stores only a hash of it.", {
						strong: (inner) => <strong>{inner}</strong>,
					})}
				</p>
				<Group className="code" p="xs" wrap="nowrap" justify="space-between">
					<code data-testid="secret">{props.secret}</code>
					<CopyButton text={props.secret} label={t("Copy the secret")} />
				</Group>
				<p className="dim">{rich("For a {code} file outside version control:", { code: <code>.env</code> })}</p>
				<CodeBlock code={`${props.variable ?? KEY_VARIABLE}=${props.secret}`} />
				{props.children}
				<p className="dim">
					{t(
						"In production, keep it in a secret manager. Use one key per application and environment, so that each can be revoked alone.",
					)}
				</p>
				<CheckField label={t("I have stored it")} checked={stored} onChange={setStored} />
				<Group justify="flex-end" gap="xs">
					<ActButton size="sm" look="main" label={t("Done")} disabled={!stored} onClick={props.onStored} />
				</Group>
			</Stack>
		</Dialog>
	);
}
