import { Button, TextInput } from "@mantine/core";
import { useEffect, useState } from "react";
import { PASSWORD_CHARS_MIN } from "../../sign-in/password-length.ts";
import { api } from "../api.ts";
import { authApi } from "../auth-api.ts";
import { ApiError } from "../http.ts";
import { Door } from "../parts/door.tsx";
import { MailSent } from "../parts/mail-sent.tsx";
import { Page } from "../parts/page.tsx";
import { PasswordField } from "../parts/password-field.tsx";
import { Notice, Problem } from "../parts/problem.tsx";
import { PageWaiting } from "../parts/waiting.tsx";
import { type Action, useAction } from "../resource.ts";
import { Link, navigate, safeNext, usePlace } from "../router.tsx";
import { useSession } from "../session.tsx";

/** Where the links of mails lead: an address verified, a password to be set anew, an invitation. */

/** Opening the link does nothing yet, since programs that look through mails open links too: the button does. */
export function VerifyPage() {
	const { me, refresh } = useSession();
	const { query } = usePlace();
	const next = safeNext(query.get("next"));
	const token = query.get("token") ?? "";
	const [step, setStep] = useState<"confirm" | "password" | "elsewhere" | "here">("confirm");
	const confirm = useAction(async (anew?: { name: string; newPassword: string }) => {
		try {
			const { signedIn } = await authApi.verifyEmail(token, anew);
			setStep(signedIn ? "here" : "elsewhere");
			if (signedIn) await refresh();
		} catch (error) {
			if (!(error instanceof ApiError && error.code === "PASSWORD_REQUIRED")) throw error;
			setStep("password");
		}
	});
	useEffect(() => {
		if (me && step === "here") navigate(next, { replace: true });
	}, [me, step, next]);

	if (step === "here") return <PageWaiting />;
	if (step === "elsewhere") {
		return (
			<Door title="Address verified">
				<Notice kind="ok">The address is verified. Sign in to go on.</Notice>
				<Button component={Link} to={`/sign-in?next=${encodeURIComponent(next)}`}>
					Sign in
				</Button>
			</Door>
		);
	}
	if (token === "" || confirm.error?.code === "INVALID_TOKEN") {
		return (
			<Door title="The link does not work">
				<Notice kind="warn">It was used before or is too old. Sign in if you confirmed your address already.</Notice>
				<Button component={Link} to="/sign-in">
					Sign in
				</Button>
				<p>
					<Link to="/sign-up">Sign up again</Link> for a new one.
				</p>
			</Door>
		);
	}
	if (step === "password") return <FirstPassword confirm={confirm} />;
	return (
		<Door title="Confirm your address">
			<p>Is this your address, and did you sign up with it?</p>
			{confirm.error && <Problem error={confirm.error} />}
			<Button loading={confirm.busy} onClick={() => void confirm.run()}>
				Confirm the address
			</Button>
		</Door>
	);
}

/** Whoever signed up with this address in another browser may have been a stranger: that password is not kept. */
function FirstPassword({ confirm }: { confirm: Action<[anew: { name: string; newPassword: string }], void> }) {
	const [name, setName] = useState("");
	const [password, setPassword] = useState("");
	return (
		<Door title="Choose a password">
			<p>This is another browser than the one that signed up. Choose the password here, and sign in with it.</p>
			<form
				className="form"
				onSubmit={(event) => {
					event.preventDefault();
					void confirm.run({ name: name.trim(), newPassword: password });
				}}
			>
				<TextInput
					label="Name"
					description="Of you or your company"
					autoComplete="name"
					required
					withAsterisk={false}
					maxLength={100}
					value={name}
					onChange={(event) => setName(event.currentTarget.value)}
				/>
				<PasswordField
					label="Password"
					description={`At least ${PASSWORD_CHARS_MIN} characters`}
					autoComplete="new-password"
					minLength={PASSWORD_CHARS_MIN}
					value={password}
					onChange={setPassword}
				/>
				{confirm.error && <Problem error={confirm.error} />}
				<Button type="submit" loading={confirm.busy}>
					Confirm the address
				</Button>
			</form>
		</Door>
	);
}

export function ResetPage() {
	const { query } = usePlace();
	const token = query.get("token");
	if (token && !query.has("error")) return <NewPassword token={token} />;
	return (
		<Door title="Reset the password" below={<Link to="/sign-in">Back to sign in</Link>}>
			{query.has("error") && <Notice kind="warn">The link was used before or is too old. Ask for a new one.</Notice>}
			<AddressForm label="Send a link" what="to set a new password" send={(email) => authApi.requestReset(email)} />
		</Door>
	);
}

function AddressForm(props: { label: string; what: string; send: (email: string) => Promise<unknown> }) {
	const [email, setEmail] = useState("");
	const [sentTo, setSentTo] = useState<string>();
	const send = useAction(async () => {
		await props.send(email.trim());
		setSentTo(email.trim());
	});
	if (sentTo) return <MailSent email={sentTo} what={props.what} />;
	return (
		<form
			className="form"
			onSubmit={(event) => {
				event.preventDefault();
				void send.run();
			}}
		>
			<TextInput
				label="Email"
				type="email"
				autoComplete="username"
				required
				withAsterisk={false}
				value={email}
				onChange={(event) => setEmail(event.currentTarget.value)}
			/>
			{send.error && <Problem error={send.error} />}
			<Button type="submit" loading={send.busy}>
				{props.label}
			</Button>
		</form>
	);
}

function NewPassword({ token }: { token: string }) {
	const [password, setPassword] = useState("");
	const [done, setDone] = useState(false);
	const reset = useAction(async () => {
		await authApi.resetPassword(password, token);
		setDone(true);
	});
	if (done) {
		return (
			<Door title="Password changed">
				<Notice kind="ok">All other sessions were ended. Sign in with the new password.</Notice>
				<Button component={Link} to="/sign-in">
					Sign in
				</Button>
			</Door>
		);
	}
	return (
		<Door title="Set a new password">
			<form
				className="form"
				onSubmit={(event) => {
					event.preventDefault();
					void reset.run();
				}}
			>
				<PasswordField
					label="New password"
					description={`At least ${PASSWORD_CHARS_MIN} characters`}
					autoComplete="new-password"
					minLength={PASSWORD_CHARS_MIN}
					value={password}
					onChange={setPassword}
				/>
				{reset.error && <Problem error={reset.error} />}
				<Button type="submit" loading={reset.busy}>
					Change the password
				</Button>
			</form>
		</Door>
	);
}

export function InvitePage() {
	const { me, chooseAccount } = useSession();
	const { query } = usePlace();
	const accept = useAction(async () => {
		const { accountId } = await api.acceptInvitation(query.get("token") ?? "");
		await chooseAccount(accountId);
		navigate("/overview", { replace: true });
	});
	return (
		<Page title="Invitation" narrow>
			<section className="panel">
				<div className="panel-body stack">
					<p>
						You were invited to an account. You are signed in as <strong>{me?.user.email}</strong>; the invitation works
						for the address that it was sent to.
					</p>
					{accept.error && <Problem error={accept.error} />}
					<div>
						<Button onClick={() => void accept.run()} loading={accept.busy}>
							Accept the invitation
						</Button>
					</div>
				</div>
			</section>
		</Page>
	);
}
