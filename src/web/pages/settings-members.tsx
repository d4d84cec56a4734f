import { Select } from "@mantine/core";
import { useState } from "react";
import { can, ROLES, type Role, rightToManage } from "../../console/views.ts";
import { type AccountView, api, type InvitationRow, type MemberKeyView, type MemberRow } from "../api.ts";
import { roleName } from "../labels.ts";
import { KeysDialog } from "../parts/dialog.tsx";
import { TextField } from "../parts/fields.tsx";
import { LineForm, LinkButton } from "../parts/form.tsx";
import { Empty, ErrorMessage, Notice } from "../parts/page.tsx";
import { DataTable, fromItems, TablePanel } from "../parts/table.tsx";
import { CopyableId, RelativeTime, Timestamp } from "../parts/text.tsx";
import { useAction, useResource } from "../resource.ts";
import { Link } from "../router.tsx";
import { useSession } from "../session.tsx";
import { inSentence, isolatedText, plural, rich, t } from "../texts.tsx";
import { useAttempt } from "../token.ts";

export function MembersPanel({ account }: { account: AccountView }) {
	const { me } = useSession();
	const members = useResource(`members ${account.id}`, () => api.members(account.id));
	const [losing, setLosing] = useState<{ member: MemberRow; role: Role | null; keys: readonly MemberKeyView[] }>();
	const change = useAction(async (member: MemberRow, role: Role | null) => {
		if (role === null || !can(role, "keys.change")) {
			const { items } = await api.memberKeys(account.id, member.userId);
			if (items.length > 0) return setLosing({ member, role, keys: items });
		}
		// Revokes any key that was created after this list was read: to keep a key the user must choose so.
		if (role === null) await api.removeMember(account.id, member.userId, "revoke");
		else await api.changeRole(account.id, member.userId, role, "revoke");
		await members.reload();
	});
	const withdraw = useAction((id: string) => api.withdrawInvitation(account.id, id), members.reload);
	const mayChange = (member: MemberRow) =>
		can(account.role, rightToManage(member.role)) && member.userId !== me?.user.id;
	const failure = change.error ?? withdraw.error;
	return (
		<TablePanel
			title={t("Members")}
			aside={<Link to="/docs/roles">{t("What each role may do")}</Link>}
			{...fromItems(members)}
			rowKey={(member) => member.userId}
			empty={<Empty title={t("No members.")} />}
			columns={[
				{
					label: t("Name"),
					lead: true,
					render: (member) => (member.userId === me?.user.id ? t("{name} (you)", { name: member.name }) : member.name),
				},
				{ label: t("Email"), render: (member) => member.email },
				{
					label: t("Role"),
					render: (member) =>
						mayChange(member) ? (
							<RoleSelect
								label={t("Role of {name}", { name: member.name })}
								hidden
								giver={account.role}
								role={member.role}
								onChange={(role) => void change.run(member, role)}
							/>
						) : (
							roleName(member.role)
						),
				},
				{ label: t("Since"), render: (member) => <Timestamp atMs={member.joinedAtMs} /> },
			]}
			act={(member) =>
				mayChange(member) && <LinkButton onClick={() => void change.run(member, null)}>{t("Remove")}</LinkButton>
			}
		>
			{failure && <ErrorMessage error={failure} />}
			{members.data && members.data.invitations.length > 0 && (
				<InvitationTable
					role={account.role}
					rows={members.data.invitations}
					onWithdraw={(invitation) => void withdraw.run(invitation.id)}
				/>
			)}
			{losing && (
				<RightsDialog
					accountId={account.id}
					{...losing}
					onClose={() => setLosing(undefined)}
					onDone={() => {
						setLosing(undefined);
						void members.reload();
					}}
				/>
			)}
			{can(account.role, "members.manage") && <InviteForm account={account} onInvited={() => void members.reload()} />}
		</TablePanel>
	);
}

function InvitationTable(props: {
	role: Role;
	rows: readonly InvitationRow[];
	onWithdraw: (invitation: InvitationRow) => void;
}) {
	const { role, rows, onWithdraw } = props;
	return (
		<DataTable
			label={t("Open invitations")}
			rows={rows}
			columns={[
				{ label: t("Invited"), lead: true, render: (invitation) => invitation.email },
				{ label: t("Role"), render: (invitation) => roleName(invitation.role) },
				{ label: t("Expires"), render: (invitation) => <RelativeTime atMs={invitation.expiresAtMs} /> },
			]}
			act={(invitation) =>
				can(role, rightToManage(invitation.role)) && (
					<LinkButton onClick={() => onWithdraw(invitation)}>{t("Withdraw")}</LinkButton>
				)
			}
		/>
	);
}

/** Select field with the roles that the viewer may assign. */
function RoleSelect(props: {
	label: string;
	hidden?: boolean;
	giver: Role;
	role: Role;
	onChange: (role: Role) => void;
}) {
	const given = ROLES.filter((role) => can(props.giver, rightToManage(role)));
	return (
		<Select
			{...(props.hidden ? { "aria-label": props.label } : { label: props.label })}
			size="xs"
			w={170}
			maw="100%"
			data={given.map((role) => ({ value: role, label: roleName(role) }))}
			allowDeselect={false}
			value={props.role}
			onChange={(value) => {
				const role = given.find((one) => one === value);
				if (role !== undefined && role !== props.role) props.onChange(role);
			}}
		/>
	);
}

function InviteForm({ account, onInvited }: { account: AccountView; onInvited: () => void }) {
	const [email, setEmail] = useState("");
	const [role, setRole] = useState<Role>("developer");
	const [made, setMade] = useState<{ email: string; link: string | null }>();
	const attempt = useAttempt();
	const invite = useAction(async () => {
		const asked = { email: email.trim(), role };
		const { link } = await attempt.send(asked, (token) => api.invite(account.id, asked, token));
		setMade({ email: asked.email, link });
		setEmail("");
		onInvited();
	});
	return (
		<LineForm
			action={invite}
			act={t("Invite")}
			more={
				made && (
					<Notice kind="ok">
						{made.link === null
							? t("Invitation sent to {email}.", { email: made.email })
							: rich("Mail is not set up here. Give {email} this link: {link}", {
									email: made.email,
									link: <CopyableId value={made.link} label={t("Copy the link")} />,
								})}
					</Notice>
				)
			}
		>
			<TextField label={t("Invite by email")} type="email" size="xs" value={email} onChange={setEmail} />
			<RoleSelect label={t("Role")} giver={account.role} role={role} onChange={setRole} />
		</LineForm>
	);
}

/** Asks whether to revoke the keys whose secrets a member knows, before the member loses the right to use keys. */
function RightsDialog(props: {
	accountId: string;
	member: MemberRow;
	/** The member's new role; null: the member is removed. */
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
		<KeysDialog
			onClose={props.onClose}
			title={
				role === null ? t("Remove {name}", { name: member.name }) : `${isolatedText(member.name)}: ${roleName(role)}`
			}
			action={change}
			keep={role === null ? t("Remove, keep the keys") : t("Change to {role}, keep the keys", named)}
			revoke={role === null ? t("Remove and revoke the keys") : t("Change to {role} and revoke the keys", named)}
		>
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
		</KeysDialog>
	);
}
