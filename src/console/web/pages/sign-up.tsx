import { Button, TextInput } from "@mantine/core";
import { useEffect, useState } from "react";
import { PASSWORD_CHARS_MAX, PASSWORD_CHARS_MIN } from "../../sign-in/password-length.ts";
import { authApi } from "../auth-api.ts";
import { brand } from "../brand.ts";
import { Door } from "../parts/door.tsx";
import { MailSent } from "../parts/mail-sent.tsx";
import { PasswordField } from "../parts/password-field.tsx";
import { Notice, Problem } from "../parts/problem.tsx";
import { useAction } from "../resource.ts";
import { Link, navigate, safeNext, usePlace } from "../router.tsx";
import { useSession } from "../session.tsx";
import { Providers } from "./sign-in.tsx";
import { TermsBox } from "./terms.tsx";

export function SignUpPage() {
	const { config, me } = useSession();
	const { query } = usePlace();
	const next = safeNext(query.get("next"));
	const [sentTo, setSentTo] = useState<string>();
	useEffect(() => {
		if (me) navigate(next, { replace: true });
	}, [me, next]);

	if (!config.signUp) {
		return (
			<Door title="Sign up">
				<Notice>New accounts are made by invitation here. Ask the operator of this service.</Notice>
			</Door>
		);
	}
	if (sentTo) {
		return (
			<Door title="Check your mail" below={<Link to="/sign-in">Sign in</Link>}>
				<MailSent email={sentTo} what="to verify the address" />
			</Door>
		);
	}
	return (
		<Door
			title="Sign up"
			below={
				<>
					Signed up before?{" "}
					<Link to={`/sign-in${query.has("next") ? `?next=${encodeURIComponent(next)}` : ""}`}>Sign in</Link>
				</>
			}
		>
			<SignUpForm next={next} onSent={setSentTo} />
			<Providers next={next} />
		</Door>
	);
}

function SignUpForm({ next, onSent }: { next: string; onSent: (email: string) => void }) {
	const [name, setName] = useState("");
	const [email, setEmail] = useState("");
	const [password, setPassword] = useState("");
	const signUp = useAction(async () => {
		const acceptedTerms = brand.terms?.version ?? null;
		await authApi.signUp({ name: name.trim(), email: email.trim(), password, next, acceptedTerms });
		onSent(email.trim());
	});
	const tooShort = password !== "" && password.length < PASSWORD_CHARS_MIN;
	return (
		<form
			className="form"
			onSubmit={(event) => {
				event.preventDefault();
				if (!tooShort) void signUp.run();
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
			<TextInput
				label="Email"
				type="email"
				autoComplete="email"
				required
				withAsterisk={false}
				value={email}
				onChange={(event) => setEmail(event.currentTarget.value)}
			/>
			<PasswordField
				label="Password"
				description={`At least ${PASSWORD_CHARS_MIN} characters`}
				autoComplete="new-password"
				minLength={PASSWORD_CHARS_MIN}
				maxLength={PASSWORD_CHARS_MAX}
				value={password}
				onChange={setPassword}
			/>
			{brand.terms && <TermsBox terms={brand.terms} />}
			{signUp.error && <Problem error={signUp.error} />}
			<Button type="submit" loading={signUp.busy}>
				Sign up
			</Button>
		</form>
	);
}
