import { curlSnippet, KEY_VARIABLE, pythonSnippet, typescriptSnippet } from "../snippets.ts";
import { t } from "../texts.tsx";
import type { Tool, ToolFacts } from "./tool.ts";
import { keyStep } from "./tool.ts";

/** curl, and the OpenAI SDK in four languages. All of them stream. */

const chat = ({ baseUrl, model, question }: ToolFacts) => ({
	baseUrl,
	model,
	messages: [{ role: "user", content: question }],
	stream: true,
});

const curl: Tool = {
	id: "curl",
	name: "curl",
	steps: (facts) => [keyStep(facts), { does: "shell", say: t("Ask"), code: curlSnippet(chat(facts)) }],
};

const python: Tool = {
	id: "openai-python",
	name: "Python",
	steps: (facts) => [
		{ does: "packages", by: "pip", packages: ["openai"] },
		{ does: "file", path: "chat.py", code: pythonSnippet(chat(facts)) },
		keyStep(facts),
		{ does: "shell", say: t("Run it"), code: "python chat.py" },
	],
};

const javascript: Tool = {
	id: "openai-javascript",
	name: "JavaScript",
	needs: t("The same in TypeScript. Node 20, or Bun."),
	steps: (facts) => [
		{ does: "packages", by: "npm", packages: ["openai"] },
		{ does: "file", path: "chat.mjs", code: typescriptSnippet(chat(facts)) },
		keyStep(facts),
		{ does: "shell", say: t("Run it"), code: "node chat.mjs" },
	],
};

const go: Tool = {
	id: "openai-go",
	name: "Go",
	steps: (facts) => [
		{ does: "packages", by: "go", packages: ["github.com/openai/openai-go/v3"] },
		{ does: "file", path: "main.go", code: goCode(facts) },
		keyStep(facts),
		{ does: "shell", say: t("Run it"), code: "go run ." },
	],
};

const goCode = ({ baseUrl, model, question }: ToolFacts) => `package main

import (
	"context"
	"fmt"
	"os"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

func main() {
	client := openai.NewClient(
		option.WithBaseURL(${JSON.stringify(baseUrl)}),
		option.WithAPIKey(os.Getenv("${KEY_VARIABLE}")),
	)
	stream := client.Chat.Completions.NewStreaming(context.Background(), openai.ChatCompletionNewParams{
		Model:    ${JSON.stringify(model)},
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(${JSON.stringify(question)})},
	})
	for stream.Next() {
		if chunk := stream.Current(); len(chunk.Choices) > 0 {
			fmt.Print(chunk.Choices[0].Delta.Content)
		}
	}
	if err := stream.Err(); err != nil {
		panic(err)
	}
}`;

const java: Tool = {
	id: "openai-java",
	name: "Java",
	needs: t("Java 17 and Maven."),
	steps: (facts) => [
		{ does: "file", path: "pom.xml", code: POM },
		{ does: "file", path: "src/main/java/Chat.java", code: javaCode(facts) },
		keyStep(facts),
		{ does: "shell", say: t("Run it"), code: "mvn -q compile exec:java -Dexec.mainClass=Chat" },
	],
};

const POM = `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>com.example</groupId>
  <artifactId>chat</artifactId>
  <version>1</version>
  <properties>
    <maven.compiler.source>17</maven.compiler.source>
    <maven.compiler.target>17</maven.compiler.target>
    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
  </properties>
  <dependencies>
    <dependency>
      <groupId>com.openai</groupId>
      <artifactId>openai-java</artifactId>
      <version>4.101.0</version>
    </dependency>
  </dependencies>
</project>`;

const javaCode = ({ baseUrl, model, question }: ToolFacts) => `import com.openai.client.OpenAIClient;
import com.openai.client.okhttp.OpenAIOkHttpClient;
import com.openai.core.http.StreamResponse;
import com.openai.models.chat.completions.ChatCompletionChunk;
import com.openai.models.chat.completions.ChatCompletionCreateParams;

public class Chat {
    public static void main(String[] args) {
        OpenAIClient client = OpenAIOkHttpClient.builder()
            .baseUrl(${JSON.stringify(baseUrl)})
            .apiKey(System.getenv("${KEY_VARIABLE}"))
            .build();
        ChatCompletionCreateParams params = ChatCompletionCreateParams.builder()
            .model(${JSON.stringify(model)})
            .addUserMessage(${JSON.stringify(question)})
            .build();
        try (StreamResponse<ChatCompletionChunk> stream = client.chat().completions().createStreaming(params)) {
            stream.stream()
                .flatMap(chunk -> chunk.choices().stream())
                .flatMap(choice -> choice.delta().content().stream())
                .forEach(System.out::print);
        }
        client.close();
    }
}`;

export const SDK_TOOLS: readonly Tool[] = [curl, python, javascript, go, java];
