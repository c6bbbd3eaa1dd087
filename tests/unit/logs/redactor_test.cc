// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/text/redactor.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace rankscope::logs {
namespace {

std::string Masked(std::string text) {
  const bool may = MayHoldSecret(text);
  const std::string before = text;
  const int32_t count = Redact(text);
  EXPECT_EQ(may, count > 0) << before;
  EXPECT_EQ(text.size(), before.size());
  EXPECT_EQ(count > 0, text != before) << before;
  // Masked text holds no secret any more.
  std::string again = text;
  EXPECT_EQ(Redact(again), 0) << text;
  return text;
}

TEST(Redactor, EveryRowMasksItsExample) {
  std::set<std::string_view> names;
  for (const RedactionRow& row : Redactions()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_FALSE(row.what.empty());
    EXPECT_NE(Masked(std::string(row.example)).find("****"), std::string::npos) << row.name;
  }
  EXPECT_GE(names.size(), 14u);
}

TEST(Redactor, MasksTheSecretAndNothingElse) {
  const struct {
    std::string text;
    std::string masked;
  } cases[] = {
      {"Authorization: Bearer abc.def-123", "Authorization: Bearer ***********"},
      {"{\"authorization\": \"Basic dXNlcjpwdw==\"}",
       "{\"authorization\": \"Basic ************\"}"},
      {"git clone https://me:hunter2@example.com/a.git",
       "git clone https://me:*******@example.com/a.git"},
      {"WANDB_API_KEY=0123456789abcdef0123456789abcdef01234567 python t.py",
       "WANDB_API_KEY=**************************************** python t.py"},
      {"export HF_TOKEN='my5ecretvalue'", "export HF_TOKEN='*************'"},
      {"{'password': 'a b c', 'step': 3}", "{'password': '*****', 'step': 3}"},
      {"--api-key s3cr3t --lr 0.1", "--api-key ****** --lr 0.1"},
      {"--api-key=s3cr3t --lr 0.1", "--api-key=****** --lr 0.1"},
      {"db_password: 12345", "db_password: *****"},
      {"aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCY",
       "aws_secret_access_key = ******************************"},
      {"mail jane.doe+x@sub.example.org now", "mail ************************** now"},
      {"(key hf_AbCdEfGhIjKlMnOpQrStUvWx)", "(key ***************************)"},
      {"login(token=\"abcdefgh12345678\")", "login(token=\"****************\")"},
      {"accessToken: abcdefgh12345678", "accessToken: ****************"},
      {"password hunter2", "password *******"},
      {"the password is hunter2.", "the password is *******."},
      {"Password for alice: s3cr3t!", "Password for alice: *******"},
      {"passwd 12345678 accepted", "passwd ******** accepted"},
      {"Password: hunter two", "Password: ****** two"},
      {"secret key: wJalrXUtnFEMI/K7MDENG", "secret key: *********************"},
      {"your API key is 0123456789abcdef", "your API key is ****************"},
      {"AKIAIOSFODNN7EXAMPLE,wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", std::string(61, '*')},
      {"AccountName=a;AccountKey=AbCdEf0123456789AbCdEf==;EndpointSuffix=x",
       "AccountName=a;AccountKey=************************;EndpointSuffix=x"},
      {"https://b.s3.amazonaws.com/k?Expires=1&Signature=AbCdEf%2F0123456789",
       "https://b.s3.amazonaws.com/k?Expires=1&Signature=*******************"},
      {"MYSQL_PWD=hunter2 PGPASSWORD=hunter2 psql", "MYSQL_PWD=******* PGPASSWORD=******* psql"},
      {"+ curl -s -u me:hunter2 https://example.com",
       "+ curl -s -u me:******* https://example.com"},
      {"$ curl --user 'me:hunter 2' -b 'sid=abc123' x",
       "$ curl --user 'me:********' -b 'sid=******' x"},
      {"mysqldump -h db -uroot -phunter2 runs", "mysqldump -h db -uroot -p******* runs"},
      {"/usr/bin/sshpass -p hunter2 ssh -p 2222 host",
       "/usr/bin/sshpass -p ******* ssh -p 2222 host"},
      {"redis-cli -p 6379 -a hunter2 ping", "redis-cli -p 6379 -a ******* ping"},
      {"subprocess ['sshpass', '-p', 'hunter2']", "subprocess ['sshpass', '-p', 'hunter2']"},
      {"wget --password=hunter2 ftp://x", "wget --password=******* ftp://x"},
      {"< Set-Cookie: sid=0123; Path=/", "< Set-Cookie: ****************"},
      {"curl -H 'Cookie: sid=0123; a=b' https://x", "curl -H 'Cookie: *************' https://x"},
      {"{'Cookie': 'sid=0123', 'Accept': 'x'}", "{'Cookie': '********', 'Accept': 'x'}"},
      {"pulling with nvapi-0123456789_abcdefghij now",
       "pulling with *************************** now"},
      {"pip: pypi-AgEIcHlwaS5vcmcCJDAxMjM0", "pip: *****************************"},
      {"https://b.s3.amazonaws.com/d.tar?X-Amz-Signature=0123456789abcdef0&x=1",
       "https://b.s3.amazonaws.com/d.tar?X-Amz-Signature=*****************&x=1"},
      {"https://a.blob.core.windows.net/c?sv=2022&sig=AbCdEf%2F0123456789",
       "https://a.blob.core.windows.net/c?sv=2022&sig=*******************"},
  };
  for (const auto& test : cases) EXPECT_EQ(Masked(test.text), test.masked);
}

TEST(Redactor, SeveralInOneLine) {
  std::string text = "a=AKIAIOSFODNN7EXAMPLE b=AKIAIOSFODNN7EXAMPLF mail x.y@example.com";
  EXPECT_EQ(Redact(text), 3);
  EXPECT_EQ(text, "a=******************** b=******************** mail ***************");
}

// Every number of a training line survives; words that look like a secret's name are none.
TEST(Redactor, NearMisses) {
  for (const std::string_view text : {
           "tokens: 123",
           "loss=1.5&sig=0.25 r8_conv npm_run pypi-mirror gsk_attention_layer_of_the_model",
           "num_tokens=4",
           "tokenizer=AutoTokenizer.from_pretrained",
           "token_acc: 0.71",
           "{'loss': 1.25, 'num_tokens': 113186.0, 'mean_token_accuracy': 0.75, 'token_acc': 0.71}",
           " iteration 3/ 9 | consumed tokens:  16643457024 | tokens per gpu per second (tgs): "
           "123.4 | lm loss: 2.6 |",
           "pad_token='<pad>'",
           "eos_token='</s>' bos_token='<s>' eos_token_id=151645, pad_token_id: 151643",
           "special tokens: 12, tokens/s: 12345.6, tokens_per_second=1234567.8",
           "image_token=<image_placeholder_0001>",
           "next_token: 12345678",
           "use_auth_token=True token=None hub_token=<HUB_TOKEN>",
           "password=None api_key=null secret=''",
           "HF_TOKEN=$HF_TOKEN",
           "Epoch: [0][ 10/500]\tAcc@1  10.25 ( 9.50)\tAcc@5 30.00 (29.00)",
           "mAP@0.5: 0.712 recall@10 0.31 ndcg@k 0.5",
           "git@github.com: Permission denied",
           "@torch.no_grad()",
           "https://example.com/a/b?x=1 http://localhost:29500 tcp://10.0.0.1:29500",
           "s3://bucket/path rdzv_endpoint=host:29400",
           "commit 0123456789abcdef0123456789abcdef01234567",
           "run id 01234567-89ab-cdef-0123-456789abcdef",
           "task-0123456789abcdef-0123456789",
           "disk-usage-of-partition-number-12345 is fine",
           "hf_trainer started; hf_model_path=/x",
           "ghp_short AKIA12 eyJ0 xoxb-1 AIzaShort",
           "AKIAIOSFODNN7EXAMPLETOOLONG",
           "step 5 loss 18.1145 lr 0.05 step_time 0.053s",
           "secretary problem: 37 %",
           "secret santa dataset 2024 loaded",
           "tokens 4096",
           "max_tokens 4096 tokens/s 31.2 num_tokens: 128",
           "pass 3 of 5, password 2 of 5",
           "password authentication failed for user \"alice\"",
           "password for alice: authentication failed",
           "Enter passphrase for key '/home/alice/.ssh/id_rsa': ",
           "password: None",
           "passwd /etc/passwd2",
           "PWD=/home/u1 OLDPWD=/tmp/2",
           "secret key not found in the registry",
           "access token expired after 3600 seconds",
           "docker run -p 8080:80 -u 1000:1000 nvcr.io/nvidia/pytorch:24.01-py3",
           "python serve.py -p 8080 -u user:group -a 1",
           "ssh -p 2222 host",
           "mysql -p -h db",
           "curl -u me -o out.tar https://example.com/a1b2c3",
           "curl -u $USER:$TOKEN https://example.com",
           "curl: option -u: requires parameter; serve -p 8080:80",
           "cookie: enabled",
           "accepted cookies: 3",
           "step 100/500 -p 0.5 -u 3:4",
           "The bearer of bad news",
           "key: value, monkey=banana, keyboard: 104",
           "loss_per_token: 0.0012345678",
           "cls_token: 0.12345678 mask_token_rate=0.15000000",
           "Unexpected token: foo",
           "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
           "################################################################",
       }) {
    EXPECT_EQ(Masked(std::string(text)), text);
  }
}

TEST(Redactor, PrivateKeyBlock) {
  EXPECT_EQ(Masked("-----BEGIN PRIVATE KEY-----\\nMIIE\\n-----END PRIVATE KEY-----"),
            "-----BEGIN PRIVATE KEY-----********-----END PRIVATE KEY-----");
  EXPECT_EQ(Masked("-----BEGIN RSA PRIVATE KEY-----"), "-----BEGIN RSA PRIVATE KEY-----");
  const std::string body = "MIIEpAIBAAKCAQEA7bq0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcd/fgh+";
  EXPECT_EQ(Masked(body), std::string(64, '*'));
}

TEST(Redactor, HostileBytes) {
  std::string text("\0\xff\xfe@\0token=\xff", 13);
  Redact(text);
  for (const std::string_view piece :
       {"token=", "password:", "://", "@", "authorization:", "eyJ", "-----BEGIN", "--api-key ",
        "password='", "\"secret\": \"", "AKIA", "hf_", "bearer "}) {
    std::string alone(piece);
    Redact(alone);
    EXPECT_EQ(alone.size(), piece.size());
    std::string many;
    while (many.size() < 60000) many += piece;
    Redact(many);
  }
}

TEST(Redactor, ValuesByName) {
  EXPECT_EQ(RedactValue("WANDB_API_KEY", "abcdef"), "******");
  EXPECT_EQ(RedactValue("HF_TOKEN", "abcdefgh1"), "*********");
  EXPECT_EQ(RedactValue("--password", "x"), "*");
  EXPECT_EQ(RedactValue("RANK", "3"), "3");
  EXPECT_EQ(RedactValue("TOKENIZERS_PARALLELISM", "false"), "false");
  EXPECT_EQ(RedactValue("MAX_TOKEN", "4096"), "4096");
  EXPECT_EQ(RedactValue("URL", "https://a:b@example.com"), "https://a:*@example.com");
  EXPECT_EQ(RedactValue("HF_TOKEN", ""), "");
}

TEST(Redactor, ArgumentsOfProgramsThatTakePasswords) {
  const struct {
    std::vector<std::string> argv;
    std::vector<std::string> masked;
  } cases[] = {
      {{"mysql", "-uroot", "-phunter2", "db"}, {"mysql", "-uroot", "-p*******", "db"}},
      {{"sudo", "/usr/bin/sshpass", "-p", "hunter2", "ssh", "-p", "22"},
       {"sudo", "/usr/bin/sshpass", "-p", "*******", "ssh", "-p", "22"}},
      {{"curl", "-u", "me:hunter2", "https://x"}, {"curl", "-u", "me:*******", "https://x"}},
      {{"curl", "--user=me:hunter2"}, {"curl", "--user=me:*******"}},
      {{"curl", "-H", "Cookie: sid=0123"}, {"curl", "-H", "Cookie: ********"}},
      {{"redis-cli", "-p", "6379", "-a", "hunter2"}, {"redis-cli", "-p", "6379", "-a", "*******"}},
      {{"wandb", "login", "hunter2"}, {"wandb", "login", "*******"}},
      {{"train", "--password", "hunter2", "-p", "8080"},
       {"train", "--password", "*******", "-p", "8080"}},
      {{"python", "serve.py", "-p", "8080", "-u", "a:b"},
       {"python", "serve.py", "-p", "8080", "-u", "a:b"}},
      {{"mysql", "-p", "db"}, {"mysql", "-p", "db"}},
      {{"train", "--url", "https://x?sig=0123456789abcdef"},
       {"train", "--url", "https://x?sig=****************"}},
  };
  for (const auto& test : cases) {
    std::vector<std::string> argv = test.argv;
    RedactArguments(argv);
    EXPECT_EQ(argv, test.masked);
  }
}

}  // namespace
}  // namespace rankscope::logs
