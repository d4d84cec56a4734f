import { Button, Group, Stack } from "@mantine/core";
import type { Role } from "../../console/views.ts";
import { api } from "../api.ts";
import { roleName } from "../labels.ts";
import { Dialog } from "../parts/dialog.tsx";
import { Problem } from "../parts/problem.tsx";
import { useAction } from "../resource.ts";
import { inSentence, isolated, plural, t } from "../texts.tsx";
import type { MemberKeyView, MemberRow } from "../views.ts";

/** Before a member loses the right to keys, asks what to do with the keys whose secrets the member has seen. */
export function RightsDialog(props: {
	accountId: string;
	member: MemberRow;
	/** Null: the member is removed. */
	role: Role | null;
	keys: readonly MemberKeyView[];
	onClose: () => void;
	onDone: () => void;
}) {
	const { accountId, member, role, keys } = props;
	const named = { role: role === null ? "" : inSentence(roleName(role)) };
	const change = useAction(async (choice: "keep" | "revoke") => {
		if (role === null) await api.removeMember(accountId, member.userId, choice);
		else await api.changeRole(accountId, member.userId, role, choice);
		props.onDone();
	});
	return (
		<Dialog
			onClose={props.onClose}
			title={role === null ? t("Remove {name}", { name: member.name }) : `${isolated(member.name)}: ${roleName(role)}`}
		>
			<Stack gap={14}>
				<p>
					{plural(
						keys.length,
						{
							one: "{email} has seen the secrets of this key, which still works:",
							other: "{email} has seen the secrets of these {count} keys, which still work:",
						},
						{ email: member.email, count: keys.length },
					)}
				</p>
				<ul>
					{keys.map((key) => (
						<li key={key.id}>
							{key.name} (…{key.lastFour})
						</li>
					))}
				</ul>
				{change.error && <Problem error={change.error} />}
				<Group justify="flex-end" gap="xs">
					<Button variant="default" onClick={props.onClose}>
						{t("Cancel")}
					</Button>
					<Button variant="default" loading={change.busy} onClick={() => void change.run("keep")}>
						{role === null ? t("Remove, keep the keys") : t("Make {role}, keep the keys", named)}
					</Button>
					<Button color="red" loading={change.busy} onClick={() => void change.run("revoke")}>
						{role === null ? t("Remove and revoke the keys") : t("Make {role} and revoke the keys", named)}
					</Button>
				</Group>
			</Stack>
		</Dialog>
	);
}
