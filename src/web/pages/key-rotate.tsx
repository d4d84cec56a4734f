import { Select } from "@mantine/core";
import { useState } from "react";
import { api } from "../api.ts";
import { ActDialog } from "../parts/dialog.tsx";
import { useAction } from "../resource.ts";
import { navigate } from "../router.tsx";
import { useAccount } from "../session.tsx";
import ToolChoice from "../snippets/tool-choice.tsx";
import { rich, t } from "../texts.tsx";
import { newToken } from "../token.ts";
import type { KeyView } from "../views.ts";
import { SecretDialog } from "./key-create.tsx";

const HOUR_MS = 3_600_000;
const GRACES = [
	{ value: "0", label: t("None: the old key stops at once") },
	{ value: String(HOUR_MS), label: t("1 hour") },
	{ value: String(24 * HOUR_MS), label: t("1 day") },
	{ value: String(7 * 24 * HOUR_MS), label: t("7 days") },
];

/**
 * Creates a replacement with the same settings. The old key keeps working for a grace period, so that applications can
 * change over.
 */
export function RotateDialog({ item, onClose }: { item: KeyView; onClose: () => void }) {
	const account = useAccount();
	const [grace, setGrace] = useState(String(24 * HOUR_MS));
	const [made, setMade] = useState<{ id: string; secret: string }>();
	// One token per dialog: a retry after a lost answer returns the same secret.
	const [token] = useState(newToken);
	const rotate = useAction(async () => {
		const { key, secret } = await api.rotateKey(account.id, item.id, Number(grace), token);
		setMade({ id: key.id, secret });
	});
	if (made) {
		const stored = () => {
			onClose();
			navigate(`/keys/${made.id}`);
		};
		return (
			<SecretDialog secret={made.secret} title={t("Replacement created")} onStored={stored}>
				{!item.readsOnly && <ToolChoice apiKey={made.secret} models={item.models} />}
			</SecretDialog>
		);
	}
	return (
		<ActDialog
			onClose={onClose}
			title={t("Rotate the key")}
			held={rotate.busy}
			action={rotate}
			act={t("Make the replacement")}
		>
			<p>
				{rich(
					"A new key with the settings of {name} is made. Change the application over to it; the old key stops when its time is over.",
					{ name: <strong>{item.name}</strong> },
				)}
			</p>
			<Select
				label={t("The old key works for")}
				data={GRACES}
				value={grace}
				allowDeselect={false}
				onChange={(value) => setGrace(value ?? "0")}
			/>
		</ActDialog>
	);
}
